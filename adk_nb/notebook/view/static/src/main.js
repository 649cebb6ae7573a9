// The module of the page: a run that is opened, and shown wherever the notebook has its output.

import { keptOutOfTheFile } from "./keep.js";
import { putBack } from "./missed.js";
import { Store } from "./store.js";
import { View } from "./view.js";

import "./panels/index.js";

export { registerPanel } from "./panels.js";

// `early`: what Python has sent since the model was made.
export function open(model, early = []) {
  const store = new Store(model);
  for (const message of early) store.receive(message);
  putBack(store.own_id, model.widget_manager);
  return {
    show(host) {
      const orphan = [...store.views].find((one) => one.isOrphan); // what is being typed in it is not lost
      orphan?.moveTo(host);
      const view = orphan ?? new View(store, host, model.widget_manager);
      store.views.add(view);
      store.say({ kind: "page", stays: keptOutOfTheFile(model.widget_manager) });
      store.say({ kind: "resync" });
      return () => view.remove();
    },
  };
}
