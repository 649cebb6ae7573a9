// Every panel of the package; a new one is one more line here.

import "./events.js";
import "./waterfall.js";
import "./state.js";
import "./graph.js";
import "./prompt.js";
import "./artifacts.js";
