// Live views are left out of the saved notebook, where they would be errors without their kernel; the same output has a form
// for the file. For a run that is not over, the file has the id of its view.

export const VIEW = "application/vnd.jupyter.widget-view+json";

/**
 * "run": the view of a run that is not over. "page": the view of a finished run, which stays on the page instead of its reply.
 *
 * @param {any} output
 */
export const viewOf = (output) => output.metadata?.[VIEW]?.adk_nb;

// Jupyter draws no widgets in a notebook that is not trusted.
const WIDGETS = "application/vnd.jupyter.widget-state+json";

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
 * The notebook's metadata without the models of views and of their code, which no output of the file refers to.
 *
 * @param {any} metadata
 */
function withoutModels(metadata) {
  const saved = metadata?.widgets?.[WIDGETS];
  if (!saved?.state) return metadata;
  const ids = Object.keys(saved.state);
  const isView = (/** @type {string} */ id) => VIEWS.test(saved.state[id].state?._anywidget_id ?? "");
  const views = ids.filter(isView);
  const parts = views.flatMap((id) => [saved.state[id].state.code, saved.state[id].state.layout]);
  const own = new Set([...views, ...parts.map((part) => String(part ?? "").replace("IPY_MODEL_", ""))]);
  const state = Object.fromEntries(Object.entries(saved.state).filter(([id]) => !own.has(id)));
  const { widgets, ...rest } = metadata;
  if (!Object.keys(state).length) return rest;
  return { ...rest, widgets: { ...widgets, [WIDGETS]: { ...saved, state } } };
}

const VIEWS = /^adk_nb\.notebook\.view\.widget\./;

/**
 * The notebook model, in JupyterLab 4 and Notebook 7; null where the page does not save it from this model, as with real-time
 * collaboration.
 *
 * @param {any} manager
 */
export function notebookOf(manager) {
  const notebook = manager?.context?.model;
  return typeof notebook?.toJSON === "function" && !notebook.collaborative ? notebook : null;
}

/**
 * The source of the cell with the view `id`; empty if unknown.
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
 * Store the places of finished views in the browser, for a reload while the kernel lives. In the file, their ids would differ
 * with each run.
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
  } catch {} // without storage, a reloaded page shows the saved form
}

/**
 * True if output number `at` of the cell `id` was the place of the finished view `view`.
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
 * Leave views out of the file from now on; returns false if the page cannot.
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
    return { ...content, metadata: withoutModels(content.metadata), cells };
  };
  return true;
}
