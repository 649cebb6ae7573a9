/** A conversation as plain data, which `chat.js` draws, and the actions that it emits. It knows no kernel and no page. */

import type { Piece } from "../types";

/** What an agent did before an answer: a call of a tool, a thought, or a note such as a transfer. */
export interface Step {
  id: string;
  kind: "call" | "thought" | "note";
  /** Of a thought or a note; of a call what it waits for. */
  text: string;
  tool: string;
  /** The arguments as text. */
  args: string;
  /** Null: there is none yet. */
  result: string | null;
  ok: boolean | null;
  ms: number | null;
}

/** An answer with the steps that it needed; an error; a note of the notebook; or what the user said to a question. */
export interface Part {
  id: string;
  kind: "answer" | "error" | "note" | "mine";
  /** Who says it. */
  who: string;
  /** The text as it was written: markdown, if `html` is not null. */
  text: string;
  /** The text as markup. While it streams, `html` has the complete blocks, and `tail` the last one. */
  html: string | null;
  tail: string;
  streaming: boolean;
  steps: Step[];
  /** Pictures, tables and pages of the answer and of its calls, each once. */
  pieces: Piece[];
  /** Foreign pages, each for a frame of its own. */
  pages: string[];
}

/** A message: its text, the names of what is attached, and pictures. */
export interface Asked {
  who: string;
  text: string;
  attached: string[];
  pieces: Piece[];
}

/** A message, and what was said to it. An object stands for its content: a turn that changed is another object. */
export interface Turn {
  id: string;
  /** The message. Null: the turn began without one. */
  asked: Asked | null;
  parts: Part[];
  running: boolean;
  /** A line below the message, such as what it waits for. */
  note: string;
  /** It can be sent again in other words. */
  repeats: boolean;
  /** It can be sent again as it is; not, if a card offers that. */
  retries: boolean;
  /** There are details of it. */
  detailed: boolean;
}

/** A conversation. */
export interface Talk {
  agent: string;
  description: string;
  /** Name of an agent -> its model. */
  models: Record<string, string>;
  turns: Turn[];
  /** Number of earlier messages that are not there any more. */
  earlier: number;
  /** First messages to choose from; `…` stands for what is to be typed. */
  suggestions: string[];
  running: boolean;
  stopping: boolean;
  /** Why no message can be sent now; empty if one can. */
  reason: string;
  /** The next message answers a question. */
  answers: boolean;
  /** Nothing can be typed any more. */
  gone: boolean;
  /** Files and variables can be attached. */
  attaches: boolean;
  /** Bytes that the files of a message may have. */
  most: number;
}

/** What goes with a message. */
export interface Attached {
  name: string;
  /** The content of a file of the reader's own disk, as base64. Null: Python knows the name. */
  data: string | null;
  /** Of that content. */
  bytes: number;
}

/** Something to attach. */
export interface Attachable {
  name: string;
  /** What it is, as `DataFrame` or `file`. */
  kind: string;
}

export type Action =
  | { kind: "send"; text: string; attach: Attached[] }
  | { kind: "stop" }
  | { kind: "retry"; turn: string }
  | { kind: "edit"; turn: string; text: string };

/** What surrounds a conversation. */
export interface Host {
  /** Returns false if the action could not be taken; a text then stays in its field. */
  emit(action: Action): boolean;
  /** The details of a turn; null: none. Called once for each time that they are opened. */
  details(turn: string): { node: HTMLElement; close(): void } | null;
  /** What can be attached. */
  attachables(): Promise<Attachable[]>;
  /** Called with markup that was drawn, as to draw its formulas. */
  drawn(node: HTMLElement): void;
  /** Move the focus out of the conversation. */
  leave(): void;
}
