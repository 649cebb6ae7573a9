/** The plugin of JupyterLab and Notebook 7: cells of adk_nb read as what they are. */

import { IEditorExtensionRegistry, IEditorLanguageRegistry } from "@jupyterlab/codemirror";
import { INotebookTracker, NotebookActions } from "@jupyterlab/notebook";
import { cellLanguage } from "./language.js";
import { cellMarks } from "./marks.js";
import { Names } from "./names.js";

/** @typedef {import("./lab.js").Kernel} Kernel */
/** @typedef {import("./lab.js").NotebookPanel} NotebookPanel */

/** A cell that fails aborts the requests behind it. */
const ATTEMPTS = 3;

/** @type {WeakMap<object, Names>} What its kernel knows, by the document of a notebook. */
const books = new WeakMap();

/**
 * @param {Kernel | null | undefined} kernel
 * @param {string} expression
 * @returns {Promise<Record<string, string[]> | null>} Null without an answer, as from a kernel without adk_nb.
 */
async function evaluate(kernel, expression) {
  if (!kernel || (await kernel.info).language_info.name !== "python") return null;
  // Silent: no history, no number, no hooks of cells, nothing for other front ends. A kernel keeps what the last request
  // said of input, and the package shows runs live where input is allowed: nothing is asked here.
  const request = { code: "", silent: true, store_history: false, allow_stdin: true, stop_on_error: false };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { content } = await kernel.requestExecute({ ...request, user_expressions: { names: expression } }).done;
    if (content.status === "ok") return content.user_expressions?.names?.data?.["application/json"] ?? null;
    if (content.status !== "aborted") return null;
  }
  return null;
}

/** @param {NotebookPanel} panel */
function follow({ context, sessionContext }) {
  const document = context.model.sharedModel;
  if (books.has(document)) return;
  const names = new Names((expression) => evaluate(sessionContext.session?.kernel, expression));
  books.set(document, names);
  sessionContext.kernelChanged.connect(() => names.forget());
  sessionContext.statusChanged.connect((_, status) => {
    if (status === "restarting" || status === "autorestarting") names.forget();
  });
  context.disposed.connect(() => {
    names.dispose();
    books.delete(document);
  });
}

export default {
  id: "adk-nb:cells",
  description: "Highlights the cells of adk_nb.",
  autoStart: true,
  requires: [IEditorExtensionRegistry, IEditorLanguageRegistry],
  optional: [INotebookTracker],
  /**
   * @param {unknown} _app
   * @param {import("./lab.js").EditorExtensionRegistry} extensions
   * @param {import("./lab.js").EditorLanguageRegistry} languages
   * @param {import("./lab.js").NotebookTracker | null} tracker
   */
  activate(_app, extensions, languages, tracker) {
    const language = cellLanguage(
      async (name) => (await languages.getLanguage(name))?.support?.language.parser ?? null,
    );
    extensions.addExtension({
      name: "adk-nb:cells",
      factory: ({ model }) => {
        if (model.type !== "code") return null;
        const extension = [language, cellMarks(() => books.get(model.sharedModel.notebook ?? model) ?? null)];
        return { instance: () => extension, reconfigure: () => null };
      },
    });
    tracker?.forEach(follow);
    tracker?.widgetAdded.connect((_, panel) => follow(panel));
    NotebookActions.executed.connect((_, { notebook }) => {
      if (notebook.model) books.get(notebook.model.sharedModel)?.expire();
    });
  },
};
