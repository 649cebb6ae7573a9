/** The JSON of view_state.py and its neighbours, and the interfaces of panels and forms. */

import type { Store } from "./store.js";
import type { View } from "./view.js";

export interface Change {
  key: string;
  kind: "" | "+" | "~" | "-";
  old: string | null;
  new: string | null;
}

export interface StateEntry {
  key: string;
  kind: "" | "+" | "~" | "-";
  old?: string | null;
  value: string | null;
}

/** A piece of a result: see writers/html.py. */
export interface Piece {
  kind: "image" | "table" | "page" | "code" | "note";
  src: string;
  alt?: string;
  html: string;
  note?: string;
  page: string;
  title?: string;
  text: string;
  language?: string;
}

export interface Argument {
  name: string;
  text: string;
  left_out?: number;
  note?: string;
}

export interface Failure {
  tool: string;
  where: string;
  arguments: Argument[];
  sent: string;
  traceback: string;
}

export interface Row {
  id: string;
  author: string;
  kind: string;
  lane: string;
  text: string;
  html: string | null;
  tail: string;
  pages: string[] | null;
  tool: string | null;
  args: string | null;
  result: string | null;
  ok: boolean | null;
  ms: number | null;
  detail: string | null;
  changes: Change[] | null;
  usage: { text: string; title: string } | null;
  shown: Piece[] | null;
  failure: Failure | null;
  streaming: boolean;
}

/** The keywords of a JSON schema that forms read. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  format?: string;
  minimum?: number;
  maximum?: number;
  nullable?: boolean;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  "x-titles"?: boolean;
}

/** Calls with equal arguments. */
export interface AlikeCalls {
  key: string;
  count: number;
  arguments: Argument[];
  hint: string;
}

export interface Card {
  id: string;
  kind: string;
  agent: string;
  tool: string;
  hint: string;
  needs: string;
  link: string;
  args: Record<string, unknown> | null;
  arguments: Argument[];
  /** The calls that the card asks for, if it asks for those of many runs. */
  alike: AlikeCalls[];
  /** The call may have taken effect already. */
  in_doubt: boolean;
  remarks?: string[];
  documents?: { title: string; text: string }[];
  /** The word of the button that approves. */
  action?: string;
  /** A yes may hold for the rest of the turn. */
  for_turn?: boolean;
  destructive?: boolean;
  schema: Schema;
  answer_schema: Schema | null;
  how: string;
  title: string;
  where: string;
  traceback: string;
  ways: string[];
  /** The message that waits and the one that was not sent. */
  texts?: string[];
  seconds: number;
  state: string;
  note: string;
  changed: string;
  /** The agent has no such tool any more. */
  gone: boolean;
  version: string;
  again: number;
}

/** The parts of a card that no agent waits for. */
export interface Notice {
  head: HTMLElement;
  parts: (Node | string)[];
  spoken: string;
}

export interface Lane {
  id: string;
  name: string;
  label: string;
  state: string;
}

export interface Artifact {
  id: string;
  name: string;
  version: number;
  mime: string;
  size: number;
  data?: string;
  image?: string;
  html?: string;
  page?: string;
  text?: string;
  alt?: string;
}

export interface Shape {
  tag: string;
  at: Record<string, string>;
  text: string;
  key: string;
}

export interface Drawing {
  title: string;
  /** `workflow`, the kind of another team, or empty. */
  kind: string;
  width: number;
  height: number;
  shapes: Shape[];
}

export interface Answer {
  question: string;
  members?: { who: string; text: string }[];
  who: string;
  /** The decisions as markup, for a view without their cards. */
  decisions?: string;
  html: string;
  pages?: string[];
  shown?: Piece[];
}

export interface Status {
  status: string;
  text: string;
  /** Seconds of work so far, without pauses. */
  seconds?: number;
}

export interface Snapshot {
  seq: number;
  title: string;
  /** Name of the model that answers; empty for a team. */
  model?: string;
  own_id: string;
  box: Box | null;
  status: Status;
  notice: string;
  notices: { text: string; label: string; folded: boolean }[];
  usage: { text: string; title?: string; tokens?: number };
  earlier: number;
  state: StateEntry[];
  rows: Row[];
  cards: Card[];
  drawing: Drawing | null;
  marks: Record<string, string>;
  lanes: Lane[];
  artifacts?: Artifact[];
  offers: string[];
  answer: Answer | null;
}

/** What a chat box has beside a run: see chat_box_view.py. */
export interface Box {
  height: number;
  agent?: string;
  description?: string;
  /** Name of an agent -> its model. */
  models?: Record<string, string>;
  suggestions?: string[];
  /** The names that can be chosen, and the current one. */
  sessions?: { current: string; names: string[] };
  /** Messages can be sent again, in a copy of the session. */
  forks?: boolean;
  /** Files and variables can be attached. */
  attaches?: boolean;
  /** Bytes that the files of a message may have. */
  most?: number;
  /** The cell that answers in the session now, as `cell [53]`; empty: the box itself, or nobody. */
  elsewhere?: string;
  /** What a message of the box waits for. */
  waiting?: string;
}

/** A change of the run; its fields depend on `op`: see LiveView.push. */
export interface Op {
  op: string;
  [field: string]: any;
}

/** The model of a view, as anywidget passes it. */
export interface Model {
  get(name: string): any;
  send(message: object): void;
  on(event: string, listener: (message: any) => void): void;
  off(event: string, listener: (message: any) => void): void;
  widget_manager: any;
}

/** One panel in one view. */
export interface PanelPart {
  /** Draw `data` from Python, undefined until it arrives. Called after each change while the panel is open. */
  paint(data?: any): void;
  /** The panel was opened, or closed. */
  opened?(): void;
  closed?(): void;
  /** An op arrived while the panel is open. */
  touch?(op: Op): void;
}

/** The interface of the view for panels from outside this package. */
export interface PanelView {
  /** Python's response for `id`; requested once. */
  need(id: string): Promise<any>;
  /** Go to the row of an event in the log. */
  showEvent(id: string): void;
  /** idle, running, pending (an interrupt is open), done, error or cancelled. */
  readonly status: string;
}

/** The argument of `registerPanel`, with `render`, or `mount` for a panel that keeps state between paints. */
export interface Panel {
  name: string;
  title: string;
  render?(root: HTMLElement, data: any, view: PanelView): void;
  mount?(root: HTMLElement, view: View): PanelPart;
  /** True if there is content; by default, if Python offers the panel. */
  exists?(store: Store): boolean;
  /** Name of the request to Python, if not `name`; null: none. */
  asks?: string | null;
  /** The ops after which the request is repeated. */
  refresh?: string[];
  /** Classes of its element. */
  look?: string;
}

/** Content of an element; null, undefined and "" are left out. */
export type Child = Node | string | null | undefined;

/** One bar of the waterfall, in milliseconds since the run began. */
export interface Bar {
  kind: string;
  name: string;
  agent: string;
  depth: number;
  begin: number;
  first: number | null;
  end: number | null;
  error: string | null;
  event: string | null;
}

/** Text of a prompt; `source`: the placeholder whose value it is. */
export interface SentText {
  text: string;
  source: string;
}

export interface PromptPart {
  role: string;
  kind: string;
  text: SentText[];
}

/** A value to choose, and its label. */
export interface Choice {
  label: string;
  value: unknown;
}

/** The input of a control: a value, nothing (`skip`), or a problem. */
export interface Result {
  value?: any;
  skip?: boolean;
  error?: string;
  node?: HTMLElement;
}

/** One parameter of a form. */
export interface Field {
  name: string;
  title?: string | null;
  box: HTMLElement;
  node?: HTMLElement;
  check(): Result;
}
