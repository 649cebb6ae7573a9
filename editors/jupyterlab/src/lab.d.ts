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
  info: Promise<{ language_info: { name: string } }>;
  requestExecute(content: object): { done: Promise<Reply> };
  createComm(target: string): Comm;
}

export interface NotebookPanel {
  context: { model: { sharedModel: object }; disposed: Signal<unknown, void> };
  sessionContext: {
    session: { kernel: Kernel | null } | null;
    kernelChanged: Signal<unknown, unknown>;
    statusChanged: Signal<unknown, string>;
  };
}

export interface NotebookTracker {
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
