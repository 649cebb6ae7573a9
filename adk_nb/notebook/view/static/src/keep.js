// A live view is kept out of the notebook's file: without its kernel it would be an error there, and what a file keeps of it
// stands beside it in the same output. Of a view that is not over the file says which it was.

export const VIEW = "application/vnd.jupyter.widget-view+json";

// "run": the view of one that is not over. "page": of one that is, which stays on the page in the place of its result.
export const viewOf = (output) => output.metadata?.[VIEW]?.adk_nb;

// Jupyter draws no view in a notebook that is not trusted.
export const NOT_DRAWN =
  "<p><em>This notebook is not trusted, so the live view is not drawn here. Run <code>%confirm</code> to get its card in a new cell, " +
  "or run the command “Trust Notebook”.</em></p>";

function withoutView(output) {
  const kind = viewOf(output);
  if (!kind) return output;
  const { [VIEW]: view, ...data } = output.data;
  if (typeof data["text/html"] === "string") data["text/html"] = data["text/html"].replace(NOT_DRAWN, "");
  const { [VIEW]: _, ...metadata } = output.metadata;
  if (kind === "run" && view) metadata.adk_nb = { view: view.model_id };
  return { ...output, data, metadata };
}

// The notebook that the page keeps, of JupyterLab 4 and Notebook 7: the manager of widgets knows the document, and one that
// only this page has is saved as its model tells it.
export function notebookOf(manager) {
  const notebook = manager?.context?.model;
  return typeof notebook?.toJSON === "function" && !notebook.collaborative ? notebook : null;
}

// Where the views of runs that are over stand, for a page that is loaded again while the kernel lives: kept in the browser,
// since the ids of views would make a file differ with each run.
function remember(manager, cells) {
  const { path, sessionContext } = manager.context;
  const views = cells.flatMap(({ id, outputs = [] }) =>
    outputs.flatMap((output, at) => (viewOf(output) === "page" ? [[id, at, output.data[VIEW]?.model_id]] : [])),
  );
  try {
    localStorage.setItem(`adk_nb:${path}`, JSON.stringify({ kernel: sessionContext.session?.kernel?.id, views }));
  } catch {} // a browser that stores nothing shows what the file has
}

// Whether `output`, number `at` of the cell `id`, is where the view `view` of a run that is over stood.
export function stoodAt(manager, view, id, at) {
  const { path, sessionContext } = manager.context;
  try {
    const { kernel, views } = JSON.parse(localStorage.getItem(`adk_nb:${path}`));
    return kernel === sessionContext.session?.kernel?.id && views.some((one) => `${one}` === `${[id, at, view]}`);
  } catch {
    return false;
  }
}

// Whether the page does so from now on.
export function keptOutOfTheFile(manager) {
  const notebook = notebookOf(manager);
  const mark = Symbol.for("adk_nb.kept_out");
  if (!notebook || notebook[mark]) return Boolean(notebook);
  notebook[mark] = true;
  const whole = notebook.toJSON.bind(notebook);
  notebook.toJSON = () => {
    const told = whole();
    remember(manager, told.cells);
    const cells = told.cells.map((cell) => (cell.outputs ? { ...cell, outputs: cell.outputs.map(withoutView) } : cell));
    return { ...told, cells };
  };
  return true;
}
