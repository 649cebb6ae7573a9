// What a page that is loaded again puts in: a file has no views, and what the kernel displays in a cell is heard by the page
// that had it run.

import { keptOutOfTheFile, NOT_DRAWN, notebookOf, stoodAt, VIEW, viewOf } from "./keep.js";

/** @import { Op } from "./types" */
/** @import { Store } from "./store.js" */

/**
 * Where such an output stands: the outputs of its cell, and which of them it is. A cell that was copied has it too.
 *
 * @param {any} notebook
 * @param {(output: any, id: string, at: number) => boolean} isIt
 */
function placesOf(notebook, isIt) {
  const places = [];
  for (const { id, outputs } of notebook.cells) {
    for (let at = 0; at < (outputs?.length ?? 0); at += 1)
      if (isIt(outputs.get(at), id, at)) places.push([outputs, at]);
  }
  return places;
}

/**
 * The view that stood there, as a file or the browser says, when its kernel lives on: Jupyter makes the models of all that
 * it has.
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
  const isIt = (output, cell, at) => isRun(output) || (!viewOf(output) && stoodAt(manager, id, cell, at));
  for (const [outputs, at] of placesOf(notebook, isIt)) {
    const { adk_nb: _, ...metadata } = outputs.get(at).metadata;
    const of = isRun(outputs.get(at)) ? "run" : "page";
    const view = { version_major: 2, version_minor: 0, model_id: id };
    const data = { ...outputs.get(at).data, [VIEW]: view };
    if (of === "run" && !outputs.trusted) data["text/html"] = `${data["text/html"] ?? ""}${NOT_DRAWN}`;
    outputs.set(at, { ...outputs.get(at).toJSON(), data, metadata: { ...metadata, [VIEW]: { adk_nb: of } } });
  }
  notebook.dirty = dirty; // what is saved is the same
}

// A page that was loaded after a cell was run does not hear what the kernel displays in that cell: it asks when the run is
// over, and puts it there.
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

  // What was put here, and not displayed by the kernel: shared, since each view has a module of its own.
  get known() {
    return (notebookOf(this.manager)[Symbol.for("adk_nb.put_here")] ??= new Set());
  }

  get late() {
    return this.store.late || this.known.has(this.store.own_id);
  }

  /**
   * What waits is asked for only when the kernel says so: what is put here is shown anew, and would ask again.
   *
   * @param {string[]} [unless]
   */
  ask(unless = ["idle", "running", "pending"]) {
    const { gone, status } = this.store;
    if (gone || !notebookOf(this.manager) || !this.late || unless.includes(status.status)) return;
    if (this.page) this.store.say({ kind: "need", what: "missed", id: this.page });
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "status") this.ask(["idle", "running"]);
    if (op.op !== "panel" || !this.page || !notebookOf(this.manager)) return;
    if (op.name === "missed" && op.id === this.page)
      queueMicrotask(() => this.put(op.data, (one) => viewOf(one) !== "page"));
    if (op.name === "beside" && op.id !== this.page) queueMicrotask(() => this.putBeside(op.data));
  }

  /**
   * Another view of the cell, as of what is asked again; several views of one run hear of it, and one puts it there.
   *
   * @param {any[]} told
   */
  putBeside(told) {
    if (!told.some(({ data }) => this.known.has(data[VIEW].model_id))) this.put(told, () => true);
  }

  /**
   * @param {any} told
   * @param {(output: any) => boolean} isHere
   */
  put(told, isHere) {
    const [outputs, place] = this.place(isHere);
    for (const { at, data, metadata } of outputs ? told : []) {
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
