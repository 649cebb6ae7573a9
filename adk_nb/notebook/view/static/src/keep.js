// A live view is kept out of the notebook's file: without its kernel it would be an error there, and what a file keeps of it
// stands beside it in the same output. Of a view that is not over the file says which it was.

export const VIEW = "application/vnd.jupyter.widget-view+json";

/**
 * "run": the view of one that is not over. "page": of one that is, which stays on the page in the place of its result.
 *
 * @param {any} output
 */
export const viewOf = (output) => output.metadata?.[VIEW]?.adk_nb;

// Jupyter draws no view in a notebook that is not trusted.
export const NOT_DRAWN =
  "<p><em>This notebook is not trusted, so the live view is not drawn here. Run <code>%confirm</code> to get its card in a new cell, " +
  "or run the command “Trust Notebook”.</em></p>";

/** @param {any} output */
function withoutView(output) {
  const kind = viewOf(output);
  if (!kind) return output;
  const { [VIEW]: view, ...data } = output.data;
  if (typeof data["text/html"] === "string") data["text/html"] = data["text/html"].replace(NOT_DRAWN, "");
  const { [VIEW]: _, ...metadata } = output.metadata;
  if (kind === "run" && view) metadata.adk_nb = { view: view.model_id };
  return { ...output, data, metadata };
}

/**
 * The notebook that the page keeps, of JupyterLab 4 and Notebook 7: the manager of widgets knows the document, and one that
 * only this page has is saved as its model tells it.
 *
 * @param {any} manager
 */
export function notebookOf(manager) {
  const notebook = manager?.context?.model;
  return typeof notebook?.toJSON === "function" && !notebook.collaborative ? notebook : null;
}

/**
 * The source of the cell in which the view `id` stands; empty where the page does not tell.
 *
 * @param {any} manager
 * @param {string} id
 */
export function sourceOf(manager, id) {
  for (const cell of notebookOf(manager)?.cells ?? []) {
    for (let at = 0; at < (cell.outputs?.length ?? 0); at += 1) {
      if (cell.outputs.get(at).data?.[VIEW]?.model_id === id) return String(cell.sharedModel?.getSource() ?? "");
    }
  }
  return "";
}

/**
 * Where the views of runs that are over stand, for a page that is loaded again while the kernel lives: kept in the browser,
 * since the ids of views would make a file differ with each run.
 *
 * @param {any} manager
 * @param {any[]} cells
 */
function remember(manager, cells) {
  const { path, sessionContext } = manager.context;
  const views = cells.flatMap(({ id, outputs = [] }) =>
    outputs.flatMap((/** @type {any} */ output, /** @type {number} */ at) =>
      viewOf(output) === "page" ? [[id, at, output.data[VIEW]?.model_id]] : [],
    ),
  );
  try {
    localStorage.setItem(`adk_nb:${path}`, JSON.stringify({ kernel: sessionContext.session?.kernel?.id, views }));
  } catch {} // a browser that stores nothing shows what the file has
}

/**
 * Whether `output`, number `at` of the cell `id`, is where the view `view` of a run that is over stood.
 *
 * @param {any} manager
 * @param {string} view
 * @param {string} id
 * @param {number} at
 */
export function stoodAt(manager, view, id, at) {
  const { path, sessionContext } = manager.context;
  try {
    const { kernel, views } = JSON.parse(localStorage.getItem(`adk_nb:${path}`) ?? "{}");
    return (
      kernel === sessionContext.session?.kernel?.id &&
      views.some((/** @type {any} */ place) => `${place}` === `${[id, at, view]}`)
    );
  } catch {
    return false;
  }
}

/**
 * Whether the page does so from now on.
 *
 * @param {any} manager
 */
export function keptOutOfTheFile(manager) {
  const notebook = notebookOf(manager);
  const mark = Symbol.for("adk_nb.kept_out");
  if (!notebook || notebook[mark]) return Boolean(notebook);
  notebook[mark] = true;
  const whole = notebook.toJSON.bind(notebook);
  notebook.toJSON = () => {
    const content = whole();
    remember(manager, content.cells);
    const cells = content.cells.map((/** @type {any} */ cell) =>
      cell.outputs ? { ...cell, outputs: cell.outputs.map(withoutView) } : cell,
    );
    return { ...content, cells };
  };
  return true;
}
