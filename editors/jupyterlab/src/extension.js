/** The plugin of JupyterLab and Notebook 7: cells of adk_nb read as what they are, and are there for its agents. */

import { IEditorExtensionRegistry, IEditorLanguageRegistry } from "@jupyterlab/codemirror";
import { INotebookTracker, NotebookActions } from "@jupyterlab/notebook";
import { KernelMessage } from "@jupyterlab/services";
import { AgentCells } from "./agent_cells.js";
import { cellLanguage } from "./language.js";
import { cellMarks } from "./marks.js";
import { Names } from "./names.js";

/** @typedef {import("./lab.js").Kernel} Kernel */
/** @typedef {import("./lab.js").NotebookPanel} NotebookPanel */
/** @typedef {import("./lab.js").NotebookTracker} NotebookTracker */

/** A cell that fails aborts the requests behind it. */
const ATTEMPTS = 3;

/** @type {WeakMap<object, Names>} What its kernel knows, by the document of a notebook. */
const books = new WeakMap();

const IN_KERNEL = '__import__("sys").modules["adk_nb.notebook.magics.extension"].known_names';
const COMM_TARGET = "adk_nb.names";
/** The comm of an agent's requests, which nobody opens; and the message with their answers. */
const CELLS_COMM = "adk_nb.cells";
const CELLS_ANSWER = "adk_nb_cells";

/**
 * @param {Kernel | null | undefined} kernel
 * @param {Record<string, string[]>} names By kind.
 * @returns {Promise<Record<string, string[]> | null>} Null without an answer, as from a kernel without adk_nb.
 */
async function lookUp(kernel, names) {
  if (!kernel || (await kernel.info).language_info.name !== "python") return null;
  // Silent: no history, no number, no hooks of cells, nothing for other front ends.
  const request = { code: "", silent: true, store_history: false, allow_stdin: false, stop_on_error: false };
  const expressions = { names: `${IN_KERNEL}(${JSON.stringify(names)})` };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { content } = await kernel.requestExecute({ ...request, user_expressions: expressions }).done;
    if (content.status === "ok") {
      // Pyodide's kernel evaluates no expressions. A comm alone would do, but kernels log targets that they do not know.
      if (!content.user_expressions) return lookUpByComm(kernel, names);
      return content.user_expressions.names?.data?.["application/json"] ?? null;
    }
    if (content.status !== "aborted") return null;
  }
  return null;
}

/**
 * @param {Kernel} kernel
 * @param {Record<string, string[]>} names
 * @returns {Promise<Record<string, string[]> | null>}
 */
function lookUpByComm(kernel, names) {
  return new Promise((resolve) => {
    const comm = kernel.createComm(COMM_TARGET);
    comm.onClose = () => resolve(null);
    comm.onMsg = ({ content }) => {
      resolve(content.data);
      comm.close();
    };
    comm.open(names);
  });
}

/**
 * Answer what agents ask of the cells. All messages are heard, as those of a comm are not: a page that was loaded again,
 * and one whose kernel another notebook shares, never heard its beginning.
 * @param {NotebookPanel} panel
 * @param {NotebookTracker} tracker
 */
function serveAgents({ context, sessionContext }, tracker) {
  const cells = new AgentCells(context.model);
  const isSeen = () => {
    const panel = tracker.find((shown) => shown.context === context && shown.isVisible);
    return panel !== undefined && window.document.visibilityState === "visible";
  };
  sessionContext.iopubMessage.connect((_, { header, content }) => {
    const kernel = sessionContext.session?.kernel;
    if (!kernel || header.msg_type !== "comm_msg" || content.comm_id !== CELLS_COMM || !content.data) return;
    const request = content.data;
    const isCall = request.ask === "who";
    const said = isCall ? { session: kernel.clientId, seen: isSeen() } : cells.answer(request);
    if (!said) return;
    const answer = { ...said, id: request.id, page: cells.page };
    if (request.channel) {
      const channel = new BroadcastChannel(request.channel);
      channel.postMessage(JSON.stringify(answer));
      channel.close();
      return;
    }
    const { clientId: session, username } = kernel;
    const message = { channel: "control", msgType: CELLS_ANSWER, session, username, content: answer };
    kernel.sendControlMessage(KernelMessage.createMessage(message), false);
  });
}

/** @param {NotebookPanel} panel @param {NotebookTracker} tracker */
function follow(panel, tracker) {
  const { context, sessionContext } = panel;
  const document = context.model.sharedModel;
  if (books.has(document)) return;
  const names = new Names((wanted) => lookUp(sessionContext.session?.kernel, wanted));
  books.set(document, names);
  serveAgents(panel, tracker);
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
  description: "Highlights the cells of adk_nb, and lets its agents read and write cells.",
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
    tracker?.forEach((panel) => follow(panel, tracker));
    tracker?.widgetAdded.connect((_, panel) => follow(panel, tracker));
    NotebookActions.executed.connect((_, { notebook }) => {
      if (notebook.model) books.get(notebook.model.sharedModel)?.expire();
    });
  },
};
