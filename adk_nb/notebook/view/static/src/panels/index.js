// Every panel of the package, as `make bundle` lists them.

import "./events.js";
import "./waterfall.js";
import "./state.js";
import "./graph.js";
import "./prompt.js";
import "./artifacts.js";
