// The drawing of a team alone, with who works, waits or failed.

import { el } from "../elements.js";
import { registerPanel } from "../panels.js";

registerPanel({
  name: "graph",
  title: "Graph",
  asks: null,
  exists: (store) => Boolean(store.drawing),
  mount(root, view) {
    const standing = el("div", "dim standing");
    root.removeAttribute("tabindex"); // the drawing has its own
    root.append(standing);
    return {
      paint() {
        if (view.picture.node.parentNode !== root) standing.before(view.picture.node);
        standing.textContent = view.picture.standing().join(" · ");
      },
    };
  },
});
