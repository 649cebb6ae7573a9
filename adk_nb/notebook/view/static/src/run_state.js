// The state of a run, changed by ops, as ViewState in Python. Independent of the page.

/** @import { Artifact, Card, Lane, Op, Row, Snapshot, StateEntry, Status } from "./types" */

export const MAX_ROWS = 1000;
const MAX_ROWS_OF_BOX = 4 * MAX_ROWS;

export class RunState {
  constructor() {
    this.title = "";
    this.modelName = "";
    this.own_id = "";
    /** @type {Snapshot["box"]} */
    this.box = null;
    this.seq = 0;
    /** @type {Status} */
    this.status = { status: "idle", text: "" };
    this.notice = "";
    /** @type {Snapshot["notices"]} */
    this.notices = [];
    /** @type {Snapshot["usage"]} */
    this.usage = { text: "" };
    this.earlier = 0;
    /** @type {StateEntry[]} */
    this.state = [];
    /** @type {Snapshot["drawing"]} */
    this.drawing = null;
    /** @type {Record<string, string>} */
    this.marks = {};
    /** @type {string[]} */
    this.offers = [];
    /** @type {Snapshot["answer"]} */
    this.answer = null;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Map<string, Lane>} */
    this.lanes = new Map();
    /** @type {Map<string, Artifact>} Oldest first. */
    this.artifacts = new Map();
    /** @type {Map<string, string>} Id of a lane -> id of its latest row. */
    this.last = new Map();
  }

  /**
   * Replace the state by a snapshot from Python.
   *
   * @param {Snapshot} snapshot
   */
  load(snapshot) {
    const { rows, cards, lanes, artifacts = [], model = "", ...rest } = snapshot;
    // Not `model`: a store has the model of its widget there.
    Object.assign(this, rest, { modelName: model });
    this.rows = new Map(rows.map((row) => [row.id, { ...row }]));
    this.lanes = new Map(lanes.map((lane) => [lane.id, lane]));
    this.cards = new Map(cards.map((card) => [card.id, card]));
    this.artifacts = new Map(artifacts.map((artifact) => [artifact.id, artifact]));
    this.last = new Map();
    for (const row of rows) this.#noteLastRow(row);
  }

  /** @param {Op} op */
  apply(op) {
    const id = op.id ?? op.event;
    const row = id === undefined ? undefined : this.rows.get(id);
    OPS[op.op]?.(this, op, row);
    if (op.op === "append" || op.op === "text" || op.op === "patch")
      this.#noteLastRow(this.rows.get(op.id ?? op.row?.id));
  }

  /**
   * The state with `entries` in place of those of the same key; removed keys come last.
   *
   * @param {StateEntry[]} entries
   */
  merged(entries) {
    const state = new Map(this.state.map((entry) => [entry.key, entry]));
    for (const entry of entries) state.set(entry.key, entry);
    const left = [...state.values()].filter((entry) => entry.kind || entry.value !== null);
    return [...left.filter((entry) => entry.kind !== "-"), ...left.filter((entry) => entry.kind === "-")];
  }

  /**
   * Mark the run as stopped and its cards as stale, after the kernel has gone.
   *
   * @param {string} notice
   */
  abandon(notice) {
    this.notice = notice;
    const { status } = this.status;
    if (status === "running" || status === "pending") this.status = { status: "cancelled", text: "stale" };
    for (const card of this.cards.values()) {
      if (card.state === "asked") Object.assign(card, { state: "stale", note: "its kernel is gone" });
    }
  }

  /** @param {Row | undefined} row */
  #noteLastRow(row) {
    if (!row?.lane) return;
    for (const id of this.lanes.keys()) if (row.lane === id || row.lane.startsWith(`${id}.`)) this.last.set(id, row.id);
  }
}

/** @type {Record<string, (run: RunState, op: any, row?: Row) => void>} */
const OPS = {
  append(run, { row }) {
    run.rows.set(row.id, { ...row });
    for (const id of run.rows.keys()) {
      if (run.rows.size <= (run.box ? MAX_ROWS_OF_BOX : MAX_ROWS)) break;
      run.rows.delete(id);
      run.earlier += 1;
    }
  },
  text(_, op, row) {
    if (!row) return;
    row.text += op.s;
    row.streaming = true;
    if (op.tail !== undefined) Object.assign(row, { html: row.html + op.html, tail: op.tail });
  },
  patch(_, { op: __, ...fields }, row) {
    if (row) Object.assign(row, { streaming: false, html: row.html && row.html + row.tail, tail: "" }, fields);
  },
  state(run, op, row) {
    run.state = op.state ?? run.merged(op.entries);
    if (row) row.changes = [...(row.changes ?? []), ...op.changes];
  },
  card: (run, { card }) => void run.cards.set(card.id, card),
  status(run, { status, text = "", seconds = 0 }) {
    run.status = { status, text, seconds };
    if (status !== "running") for (const row of run.rows.values()) row.streaming = false;
  },
  clear(run) {
    for (const content of [run.rows, run.cards, run.lanes, run.artifacts, run.last]) content.clear();
    Object.assign(run, {
      notice: "",
      usage: { text: "" },
      earlier: 0,
      state: [],
      drawing: null,
      marks: {},
      answer: null,
    });
  },
  box(run, { box }) {
    run.box = run.box && { ...run.box, ...box };
  },
  usage(run, { text, title = "", tokens = 0 }) {
    run.usage = { text, title, tokens };
  },
  notice(run, { text }) {
    run.notice = text;
  },
  model(run, { name }) {
    run.modelName = name;
  },
  notices(run, { notices }) {
    run.notices = notices;
  },
  drawing(run, { drawing }) {
    run.drawing = drawing;
  },
  mark(run, { marks }) {
    run.marks = { ...run.marks, ...marks };
  },
  lane: (run, { lane }) => void run.lanes.set(lane.id, lane),
  artifact: (run, { artifact }) => void run.artifacts.set(artifact.id, artifact),
  offers(run, { what }) {
    run.offers = what;
  },
  answer(run, { answer }) {
    run.answer = answer;
  },
};
