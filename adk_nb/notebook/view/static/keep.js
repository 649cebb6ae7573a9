// A view of a run that is over stays on the page, and out of the notebook's file: without its kernel it would be an error
// there, and what a file keeps of it stands beside it in the same output.

const VIEW = "application/vnd.jupyter.widget-view+json";

function withoutViews(output) {
  if (output.metadata?.[VIEW]?.adk_nb !== "page") return output;
  const { [VIEW]: _, ...data } = output.data;
  const { [VIEW]: __, ...metadata } = output.metadata;
  return { ...output, data, metadata };
}

// Whether the page does so from now on. Of JupyterLab 4 and Notebook 7: the manager of widgets knows the document, and a
// document that only this page has is saved as its model tells it.
function keptOutOfTheFile(manager) {
  const notebook = manager?.context?.model;
  if (typeof notebook?.toJSON !== "function" || notebook.collaborative) return false;
  const mark = Symbol.for("adk_nb.kept_out");
  if (notebook[mark]) return true;
  notebook[mark] = true;
  const whole = notebook.toJSON.bind(notebook);
  notebook.toJSON = () => {
    const told = whole();
    const cells = told.cells.map((cell) => (cell.outputs ? { ...cell, outputs: cell.outputs.map(withoutViews) } : cell));
    return { ...told, cells };
  };
  return true;
}
