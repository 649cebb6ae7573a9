declare module "@jupyterlab/codemirror" {
  export const IEditorExtensionRegistry: object;
  export const IEditorLanguageRegistry: object;
}

declare module "@jupyterlab/notebook" {
  export const INotebookTracker: object;
  export const NotebookActions: {
    executed: {
      connect(slot: (sender: unknown, args: { notebook: { model: { sharedModel: object } | null } }) => void): void;
    };
  };
}

declare module "@jupyterlab/services" {
  export const KernelMessage: { createMessage(message: object): object };
}
