// A live view is kept out of the notebook's file: without its kernel it would be an error there, and what a file keeps of it
// stands beside it in the same output. Of a view that is not over the file says which it was.

const VIEW = "application/vnd.jupyter.widget-view+json";

// "run": the view of one that is not over. "page": of one that is, which stays on the page in the place of its result.
const viewOf = (output) => output.metadata?.[VIEW]?.adk_nb;

function withoutView(output) {
  const kind = viewOf(output);
  if (!kind) return output;
  const { [VIEW]: view, ...data } = output.data;
  const { [VIEW]: _, ...metadata } = output.metadata;
  if (kind === "run" && view) metadata.adk_nb = { view: view.model_id };
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
    const cells = told.cells.map((cell) => (cell.outputs ? { ...cell, outputs: cell.outputs.map(withoutView) } : cell));
    return { ...told, cells };
  };
  return true;
}
