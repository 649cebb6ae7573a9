/** The parts of JupyterLab that the extension uses; its own types are some hundred packages. */

import type { LanguageSupport } from "@codemirror/language";
import type { Extension } from "@codemirror/state";

interface Signal<Sender, Args> {
  connect(slot: (sender: Sender, args: Args) => void): void;
}

export interface Reply {
  content: {
    status: string;
    user_expressions?: Record<string, { data?: Record<string, Record<string, string[]>> }>;
  };
}

export interface Comm {
  onMsg(message: { content: { data: Record<string, string[]> } }): void;
  onClose(): void;
  open(data: object): unknown;
  close(): unknown;
}

export interface Kernel {
  clientId: string;
  username: string;
  info: Promise<{ language_info: { name: string } }>;
  sendControlMessage(message: object, expectReply: boolean): unknown;
  requestExecute(content: object): { done: Promise<Reply> };
  createComm(target: string): Comm;
}

/** A message of an agent; `adk_nb/notebook/extensions/notebook_tools/pages.py` sends it. */
export interface AgentRequest {
  id: string;
  ask: "who" | "read" | "insert" | "change";
  /** The page that is meant. */
  to: string;
  /** In a browser: the channel for the answer. */
  channel: string;
  source: string;
  /** The name of the agent. */
  by: string;
  /** Ids of cells: above the new one, the running one, and the one to change. */
  below: string;
  running: string;
  cell: string;
  was: string;
}

export interface Output {
  output_type: string;
  text?: unknown;
  data?: Record<string, unknown>;
  ename?: string;
  evalue?: string;
  traceback?: string[];
}

interface UndoManager {
  stopCapturing(): void;
}

export interface Cell {
  id: string;
  type: string;
  executionCount?: number | null;
  outputs?: { toJSON(): Output[] };
  sharedModel: {
    undoManager: UndoManager | null;
    getSource(): string;
    updateSource(start: number, end: number, text: string): void;
    getMetadata(key: string): any;
    setMetadata(key: string, value: unknown): void;
    transact(edit: () => void): void;
  };
}

export interface NotebookModel {
  readOnly: boolean;
  cells: { length: number; get(index: number): Cell };
  sharedModel: { undoManager: UndoManager; insertCell(index: number, cell: object): unknown };
}

export interface IopubMessage {
  header: { msg_type: string };
  content: { comm_id?: string; data?: AgentRequest };
}

export interface NotebookPanel {
  isVisible: boolean;
  context: { model: NotebookModel; disposed: Signal<unknown, void> };
  sessionContext: {
    session: { kernel: Kernel | null } | null;
    iopubMessage: Signal<unknown, IopubMessage>;
    kernelChanged: Signal<unknown, unknown>;
    statusChanged: Signal<unknown, string>;
  };
}

export interface NotebookTracker {
  find(isWanted: (panel: NotebookPanel) => boolean): NotebookPanel | undefined;
  forEach(visit: (panel: NotebookPanel) => void): void;
  widgetAdded: Signal<unknown, NotebookPanel>;
}

export interface CellModel {
  type?: string;
  sharedModel: { notebook?: object | null };
}

export interface EditorExtensionRegistry {
  addExtension(factory: {
    name: string;
    factory(options: { model: CellModel }): { instance(): Extension; reconfigure(): null } | null;
  }): void;
}

export interface EditorLanguageRegistry {
  getLanguage(name: string): Promise<{ support?: LanguageSupport } | null>;
}
