// The log, with the drawing of the team and the state beside it.

import { registerPanel } from "../panels.js";

registerPanel({
  name: "events",
  title: "Events",
  look: "panes",
  asks: null,
  exists: () => true,
  mount(root, view) {
    root.removeAttribute("tabindex"); // its parts have theirs
    root.append(view.picture.node, view.events.node, view.state.node);
    return {
      paint() {
        if (view.picture.node.parentNode !== root) view.events.node.before(view.picture.node);
      },
    };
  },
});
