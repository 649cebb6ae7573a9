// Outputs that a reloaded page lacks: views, which are not in the file, and outputs of running cells, which the kernel sends
// only to the page that ran them.

import { keptOutOfTheFile, NOT_DRAWN, notebookOf, stoodAt, VIEW, viewOf } from "./keep.js";

/** @import { Op } from "./types" */
/** @import { Store } from "./store.js" */

/**
 * The places of matching outputs: the outputs of a cell, and an index. A copied cell has a place, too.
 *
 * @param {any} notebook
 * @param {(output: any, id: string, at: number) => boolean} matches
 */
function placesOf(notebook, matches) {
  const places = [];
  for (const { id, outputs } of notebook.cells) {
    for (let at = 0; at < (outputs?.length ?? 0); at += 1)
      if (matches(outputs.get(at), id, at)) places.push([outputs, at]);
  }
  return places;
}

/**
 * Put a view back into its output, as noted in the file or the browser. Called if the kernel still has the view's model.
 *
 * @param {string} id
 * @param {any} manager
 */
export async function putBack(id, manager) {
  const notebook = notebookOf(manager);
  if (!notebook) return;
  keptOutOfTheFile(manager);
  await manager.context.ready;
  const { dirty } = notebook;
  /** @param {any} _ */
  const isRun = ({ metadata }) => metadata?.adk_nb?.view === id;
  /**
   * @param {any} output
   * @param {any} cell
   * @param {number} at
   */
  const matches = (output, cell, at) => isRun(output) || (!viewOf(output) && stoodAt(manager, id, cell, at));
  for (const [outputs, at] of placesOf(notebook, matches)) {
    const { adk_nb: _, ...metadata } = outputs.get(at).metadata;
    const of = isRun(outputs.get(at)) ? "run" : "page";
    const view = { version_major: 2, version_minor: 0, model_id: id };
    const data = { ...outputs.get(at).data, [VIEW]: view };
    if (of === "run" && !outputs.trusted) data["text/html"] = `${data["text/html"] ?? ""}${NOT_DRAWN}`;
    outputs.set(at, { ...outputs.get(at).toJSON(), data, metadata: { ...metadata, [VIEW]: { adk_nb: of } } });
  }
  notebook.dirty = dirty; // the saved content is the same
}

// Requests the outputs of a cell that was run before this page was loaded, when the run is over, and inserts them.
export class Missed {
  /**
   * @param {Store} store
   * @param {any} manager
   */
  constructor(store, manager) {
    this.store = store;
    this.manager = manager;
  }

  get page() {
    return this.manager?.context?.sessionContext?.session?.kernel?.clientId;
  }

  // Ids of views that were inserted by this page; kept on the notebook, since views of two kernels have separate modules.
  get known() {
    return (notebookOf(this.manager)[Symbol.for("adk_nb.put_here")] ??= new Set());
  }

  get late() {
    return this.store.late || this.known.has(this.store.own_id);
  }

  /**
   * Request missed outputs, except in a status of `unless`. An inserted view is drawn again, which must not ask again.
   *
   * @param {string[]} [unless]
   */
  ask(unless = ["idle", "running", "pending"]) {
    const { gone, status } = this.store;
    if (gone || !notebookOf(this.manager) || !this.late || unless.includes(status.status)) return;
    if (this.page) this.store.send({ kind: "need", what: "missed", id: this.page });
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "status") this.ask(["idle", "running"]);
    if (op.op !== "panel" || !this.page || !notebookOf(this.manager)) return;
    if (op.name === "missed" && op.id === this.page)
      queueMicrotask(() => this.put(op.data, (output) => viewOf(output) !== "page"));
    if (op.name === "beside" && op.id !== this.page) queueMicrotask(() => this.putBeside(op.data));
  }

  /**
   * Insert another view of the cell, unless a view of the same run has done so.
   *
   * @param {any[]} missed
   */
  putBeside(missed) {
    if (!missed.some(({ data }) => this.known.has(data[VIEW].model_id))) this.put(missed, () => true);
  }

  /**
   * @param {any} missed
   * @param {(output: any) => boolean} isHere
   */
  put(missed, isHere) {
    const [outputs, place] = this.place(isHere);
    for (const { at, data, metadata } of outputs ? missed : []) {
      if (data[VIEW]) this.known.add(data[VIEW].model_id);
      const output = { output_type: "display_data", data, metadata };
      if (at === null) outputs.add(output);
      else if (place + at < outputs.length) outputs.set(place + at, output);
    }
  }

  /** @param {(output: any) => boolean} isHere */
  place(isHere) {
    /** @param {any} output */
    const isOwn = (output) => output.data[VIEW]?.model_id === this.store.own_id && isHere(output);
    return placesOf(notebookOf(this.manager), isOwn)[0] ?? [];
  }
}
