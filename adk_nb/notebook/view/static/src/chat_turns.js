// The rows of a box as turns of a conversation. Only turns with new rows are made anew.

import { authorOf } from "./row_text.js";

/** @import { Asked, Part, Step, Turn } from "./chat/types" */
/** @import { Op, Piece, Row } from "./types" */
/** @import { Store } from "./store.js" */

/**
 * @typedef {object} Entry The rows of a turn.
 * @property {string[]} rows Their ids.
 * @property {Turn | null} turn Null: it has to be made.
 */

// A message, not an answer to a card, which belongs to the turn that asked.
const BEGINS = /^(?!.*\/answer\d+$)/;

export class Turns {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Map<string, Entry>} By the ids of their rows. */
    this.of = new Map();
  }

  reset() {
    this.entries = [];
    this.of.clear();
    for (const row of this.store.rows.values()) this.#add(row);
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "append") this.#add(op.row);
    else if (op.op === "clear") this.reset();
    else if (op.op === "status" || op.op === "card") this.#forget(this.entries.at(-1));
    else if (op.id !== undefined) this.#forget(this.of.get(op.id));
  }

  /** @param {Entry | undefined} entry */
  #forget(entry) {
    if (entry) entry.turn = null;
  }

  /** @param {Row} row */
  #add(row) {
    const begins = row.kind === "user" && BEGINS.test(row.id);
    if (begins || row.id.startsWith("note") || !this.entries.length) {
      this.#forget(this.entries.at(-1));
      this.entries.push({ rows: [], turn: null });
    }
    const entry = this.entries[this.entries.length - 1];
    entry.rows.push(row.id);
    entry.turn = null;
    this.of.set(row.id, entry);
  }

  /**
   * True for a row of a turn, which has the id of its first row.
   *
   * @param {string} turn
   * @param {string} row
   */
  isIn(turn, row) {
    return this.of.get(row)?.rows[0] === turn;
  }

  /** All turns, oldest first. */
  take() {
    const { status, earlier } = this.store;
    const last = this.entries.at(-1);
    if (earlier) this.entries = this.entries.filter((entry) => this.#isKept(entry));
    const retries = [...this.store.cards.values()].some(
      (card) => this.store.isOpen(card) && card.ways?.includes("retry"),
    );
    for (const entry of this.entries) {
      const isLast = entry === last;
      entry.turn ??= this.#turn(entry.rows, isLast ? status.status : "done", isLast && retries);
    }
    return this.entries.flatMap(({ turn }) => (turn ? [turn] : []));
  }

  /** @param {Entry} entry */
  #isKept(entry) {
    const { rows } = this.store;
    if (rows.has(entry.rows[0])) return true;
    for (const id of entry.rows) if (!rows.has(id)) this.of.delete(id);
    entry.rows = entry.rows.filter((id) => rows.has(id));
    entry.turn = null;
    return entry.rows.length > 0;
  }

  /**
   * @param {string[]} ids
   * @param {string} status
   * @param {boolean} hasCard Its card retries it.
   * @returns {Turn}
   */
  #turn(ids, status, hasCard) {
    const rows = ids.map((id) => this.store.rows.get(id)).filter((row) => row !== undefined);
    const first = rows[0];
    const begins = first?.kind === "user" && BEGINS.test(first.id);
    const running = status === "running";
    const parts = partsOf(begins ? rows.slice(1) : rows, running);
    if (status === "cancelled") parts.push(partOf(`${ids[0]}/stopped`, "note", "", "Stopped."));
    const isSaid = !/^(refused|note)/.test(ids[0]);
    const repeats = begins && (!isSaid || this.store.box?.forks === true);
    return {
      id: ids[0],
      asked: begins ? askedBy(first) : null,
      parts,
      running,
      note: "",
      repeats,
      retries: repeats && !hasCard,
      detailed: isSaid,
    };
  }
}

// What message_text in event_text.py writes for an attachment.
const ATTACHED = /\n\[attached: ([^\n]*)\]\n\[[^\n\]]*\](?=\n|$)/g;

/**
 * @param {Row} row
 * @returns {Asked}
 */
function askedBy(row) {
  const attached = [...row.text.matchAll(ATTACHED)].map(([, name]) => name);
  return { who: authorOf(row), text: row.text.replace(ATTACHED, "").trim(), attached, pieces: row.shown ?? [] };
}

/**
 * @param {string} id
 * @param {Part["kind"]} kind
 * @param {string} who
 * @param {string} text
 * @returns {Part}
 */
export function partOf(id, kind, who, text) {
  return { id, kind, who, text, html: null, tail: "", streaming: false, steps: [], pieces: [], pages: [] };
}

/**
 * The rows of a turn as what is said: calls go to the answer after them.
 *
 * @param {Row[]} rows
 * @param {boolean} running
 */
export function partsOf(rows, running) {
  const said = new Said();
  for (const row of rows) {
    if (row.kind === "user" && said.isQuestion) said.mine(row);
    else if (isStep(row) || row.kind === "user") said.step(row);
    else if (row.kind === "sources") said.sources(row);
    else if (row.kind === "marker") said.parts.push(partOf(row.id, "note", "", row.text));
    else if (row.kind === "error") said.error(row);
    else if (row.text || row.streaming || row.shown?.length) said.answer(row);
  }
  said.end(authorOf(rows[rows.length - 1] ?? { author: "" }), running);
  return said.parts;
}

class Said {
  constructor() {
    /** @type {Part[]} */
    this.parts = [];
    this.question = ""; // id of the last question
    this.first = ""; // id of the first row of what is said next
    /** @type {Step[]} */
    this.steps = [];
    /** @type {Piece[]} */
    this.pieces = [];
  }

  #begin() {
    this.first = "";
    this.steps = [];
    this.pieces = [];
  }

  get #last() {
    return this.parts.findLast((part) => part.kind === "answer");
  }

  /** @param {Row} row */
  step(row) {
    this.first ||= row.id;
    this.steps.push(stepOf(row));
    this.pieces.push(...(row.shown ?? []));
  }

  /** @param {Row} row */
  sources({ html, pages }) {
    const last = this.#last;
    if (!last) return;
    last.html = `${last.html ?? ""}${html ?? ""}`;
    last.pages = [...last.pages, ...(pages ?? [])];
  }

  /** True if the last thing that was said is a question. */
  get isQuestion() {
    return this.parts.length > 0 && this.parts.at(-1)?.id === this.question;
  }

  /** @param {Row} row */
  mine(row) {
    this.parts.push(partOf(row.id, "mine", authorOf(row), row.text));
  }

  /** @param {Row} row */
  error(row) {
    this.parts.push({ ...partOf(row.id, "error", authorOf(row), row.text), steps: this.steps });
    this.#begin();
  }

  /** @param {Row} row */
  answer(row) {
    const { id, text, html, tail, streaming, pages } = row;
    const said = { html, tail, streaming, steps: this.steps, pieces: once([...this.pieces, ...(row.shown ?? [])]) };
    if (row.kind === "question") this.question = this.first || id;
    this.parts.push({ ...partOf(this.first || id, "answer", authorOf(row), text), ...said, pages: pages ?? [] });
    this.#begin();
  }

  /**
   * @param {string} who
   * @param {boolean} running
   */
  end(who, running) {
    const { steps, pieces, first } = this;
    if (!steps.length) return;
    const last = this.#last;
    // Thoughts and notes after the last answer belong to it, unless another one may come.
    if (!running && last && !steps.some((step) => step.kind === "call")) last.steps = [...last.steps, ...steps];
    else this.parts.push({ ...partOf(first, "answer", who, ""), steps, pieces: once(pieces) });
  }
}

/**
 * True for what an agent does before it answers.
 *
 * @param {Row} row
 */
export function isStep({ kind, author }) {
  return kind === "call" || kind === "thought" || (kind === "marker" && author !== "notebook");
}

/**
 * @param {Row} row
 * @returns {Step}
 */
export function stepOf({ id, kind, text, tool, args, result, ok, ms }) {
  const known = kind === "call" || kind === "thought" ? kind : "note";
  return { id, kind: known, text, tool: tool ?? "", args: args ?? "", result, ok, ms };
}

/**
 * Each picture once, though a tool and an answer show it.
 *
 * @param {Piece[]} pieces
 */
function once(pieces) {
  const seen = new Set();
  return pieces.filter(({ kind, src, html, page, text }) => {
    const key = JSON.stringify([kind, src, html, page, text]);
    return !seen.has(key) && seen.add(key);
  });
}
