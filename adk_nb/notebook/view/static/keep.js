// A view of a run that is over stays on the page, and out of the notebook's file: without its kernel it would be an error
// there, and what a file keeps of it stands beside it in the same output.

const VIEW = "application/vnd.jupyter.widget-view+json";
const stores = new Set();

const isOfAReply = (metadata) => metadata?.[VIEW]?.adk_nb === "page";

function withoutViews(output) {
  const id = output.data?.[VIEW]?.model_id;
  const isLost = () => [...stores].some((store) => store.gone && store.own_id === id);
  if (!id || !(isOfAReply(output.metadata) || isLost())) return output;
  const { [VIEW]: _, ...data } = output.data;
  const { [VIEW]: __, ...metadata } = output.metadata;
  return { ...output, data, metadata };
}

// The notebook that the page keeps, of JupyterLab 4 and Notebook 7: the manager of widgets knows the document, and one that
// only this page has is saved as its model tells it.
function notebookOf(manager) {
  const notebook = manager?.context?.model;
  return typeof notebook?.toJSON === "function" && !notebook.collaborative ? notebook : null;
}

// Whether the page does so from now on.
function keptOutOfTheFile(manager) {
  const notebook = notebookOf(manager);
  const mark = Symbol.for("adk_nb.kept_out");
  if (!notebook || notebook[mark]) return Boolean(notebook);
  notebook[mark] = true;
  const whole = notebook.toJSON.bind(notebook);
  notebook.toJSON = () => {
    const told = whole();
    const cells = told.cells.map((cell) => (cell.outputs ? { ...cell, outputs: cell.outputs.map(withoutViews) } : cell));
    return { ...told, cells };
  };
  return true;
}

// A page that was loaded after a cell was run does not hear what the kernel displays in that cell: it asks when the run is
// over, and puts it there.
class Missed {
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

  ask() {
    const { gone, status } = this.store;
    if (gone || !notebookOf(this.manager) || !this.late || ["idle", "running", "pending"].includes(status.status)) return;
    if (this.page) this.store.say({ kind: "need", what: "missed", id: this.page });
  }

  touch(op) {
    if (op.op === "status") this.ask();
    if (op.op !== "panel" || !this.page || !notebookOf(this.manager)) return;
    if (op.name === "missed" && op.id === this.page) queueMicrotask(() => this.put(op.data, (one) => !isOfAReply(one)));
    if (op.name === "beside" && op.id !== this.page) queueMicrotask(() => this.putBeside(op.data));
  }

  // Another view of the cell, as of what is asked again; several views of one run hear of it, and one puts it there.
  putBeside(told) {
    if (!told.some(({ data }) => this.known.has(data[VIEW].model_id))) this.put(told, () => true);
  }

  put(told, isHere) {
    const [outputs, place] = this.place(isHere);
    for (const { at, data, metadata } of outputs ? told : []) {
      if (data[VIEW]) this.known.add(data[VIEW].model_id);
      const output = { output_type: "display_data", data, metadata };
      if (at === null) outputs.add(output);
      else if (place + at < outputs.length) outputs.set(place + at, output);
    }
  }

  place(isHere) {
    for (const { outputs } of notebookOf(this.manager).cells) {
      for (let at = 0; at < (outputs?.length ?? 0); at += 1) {
        const { data, metadata } = outputs.get(at);
        if (data[VIEW]?.model_id === this.store.own_id && isHere(metadata)) return [outputs, at];
      }
    }
    return [];
  }
}
