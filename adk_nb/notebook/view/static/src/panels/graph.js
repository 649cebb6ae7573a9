// The drawing of a team, with the states of its nodes as text.

import { el } from "../elements.js";
import { registerPanel } from "../panels.js";

registerPanel({
  name: "graph",
  title: "Graph",
  asks: null,
  exists: (store) => Boolean(store.drawing),
  mount(root, view) {
    const states = el("div", "dim standing");
    root.removeAttribute("tabindex"); // the drawing has its own
    root.append(states);
    return {
      paint() {
        if (view.picture.node.parentNode !== root) states.before(view.picture.node);
        states.textContent = view.picture.stateTexts().join(" · ");
      },
    };
  },
});
