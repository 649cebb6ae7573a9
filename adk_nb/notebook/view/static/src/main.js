// The view's code: open a run, and show it in each place where the notebook displays its output.

import { watchCells } from "./busy_cell.js";
import { keptOutOfTheFile } from "./keep.js";
import { putBack } from "./missed.js";
import { showPage } from "./page.js";
import { Store } from "./store.js";
import { View } from "./view.js";

import "./panels/index.js";

/** @import { Model } from "./types" */

export { registerPanel } from "./panels.js";

/**
 * `early`: messages from Python since the model was made.
 *
 * @param {Model} model
 * @param {any[]} [early]
 */
export function open(model, early = []) {
  if (model.get("html") !== undefined) return { show: (/** @type {HTMLElement} */ host) => showPage(model, host) };
  const store = new Store(model);
  for (const message of early) store.receive(message);
  /** @type {Set<View>} */
  const views = new Set();
  putBack(store.own_id, model.widget_manager);
  if (store.box) watchCells(model.widget_manager);
  return {
    /** @param {HTMLElement} host */
    show(host) {
      const orphan = [...views].find((view) => view.isOrphan); // reused, so that typed text is not lost
      orphan?.moveTo(host);
      const view = orphan ?? new View(store, host, model.widget_manager);
      views.add(view);
      store.views.add(view);
      store.send({ kind: "page", stays: keptOutOfTheFile(model.widget_manager) });
      store.send({ kind: "resync" });
      return () => {
        views.delete(view);
        view.remove();
      };
    },
  };
}
