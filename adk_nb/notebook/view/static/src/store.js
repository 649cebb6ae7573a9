// The connection of a run to Python on one page: batches of ops in order, requests, and messages.

import { RunState } from "./run_state.js";
import { GONE } from "./words.js";

/** @import { Card, Model, Op, Snapshot } from "./types" */

/**
 * @typedef {object} Watcher
 * @property {() => void} reset The whole state was replaced.
 * @property {(op: Op) => void} touch An op has changed the run.
 */

export class Store extends RunState {
  /** @param {Model} model */
  constructor(model) {
    super();
    this.model = model;
    this.manager = model.widget_manager;
    /** @type {{name: string, title: string, module?: string}[]} */
    this.listed = model.get("panels");
    /** @type {Set<Watcher>} */
    this.views = new Set();
    /** @type {Map<string, number>} Id of a card -> card.again at the click: the card is closed here until Python responds. */
    this.sent = new Map();
    /** @type {Map<string, any>} Request, as "waterfall" or "event/id" -> the response. */
    this.panels = new Map();
    /** @type {Map<string, (data: any) => void>} Request -> callback for the response. */
    this.needed = new Map();
    /** @type {Map<number, Op[]>} Batches that arrived out of order, by number. */
    this.ahead = new Map();
    this.gone = false;
    this.statusAt = 0; // when the status arrived
    /** @type {Map<string, number>} Id of a row -> when its latest op arrived on this page. */
    this.heard = new Map();
    const snapshot = model.get("snapshot");
    this.late = snapshot.seq > 0; // the run had begun before the page saw it
    this.load(snapshot);
    this.statusAt = performance.now();
    model.on("change:snapshot", () => this.adopt(model.get("snapshot")));
    model.on("msg:custom", (message) => this.receive(message));
    model.on("comm_live_update", () => this.send({ kind: "resync" })); // the kernel has gone, or come
  }

  /**
   * Request data from Python once, and call `then` with it.
   *
   * @param {string} what
   * @param {string} id
   * @param {(data: any) => void} then
   */
  need(what, id, then) {
    const key = `${what}/${id}`;
    if (this.panels.has(key)) then(this.panels.get(key));
    else if (this.send({ kind: "need", what, id })) this.needed.set(key, then);
  }

  /** @param {Snapshot} snapshot */
  adopt(snapshot) {
    if (snapshot.seq <= this.seq) return;
    this.load(snapshot);
    this.statusAt = performance.now();
    this.gone = false;
    this.#catchUp();
    for (const view of this.views) view.reset();
  }

  /** @param {{kind: string, seq: number, ops: Op[]}} message */
  receive(message) {
    if (message.kind !== "ops" || message.seq <= this.seq) return;
    this.ahead.set(message.seq, message.ops);
    this.#catchUp();
    if (this.ahead.size) this.send({ kind: "resync" });
  }

  #catchUp() {
    for (const seq of this.ahead.keys()) if (seq <= this.seq) this.ahead.delete(seq);
    for (let ops = this.ahead.get(this.seq + 1); ops; ops = this.ahead.get(this.seq + 1)) {
      this.seq += 1;
      for (const op of ops) this.#take(op);
      this.ahead.delete(this.seq);
    }
  }

  /** @param {Op} op */
  #take(op) {
    this.apply(op);
    if (op.op === "status") this.statusAt = performance.now();
    const row = op.id ?? op.row?.id;
    if (op.op === "append" || op.op === "text" || op.op === "patch") this.heard.set(row, performance.now());
    if (op.op === "panel") {
      const key = op.id ? `${op.name}/${op.id}` : op.name;
      this.panels.set(key, op.data);
      this.needed.get(key)?.(op.data);
      this.needed.delete(key);
    }
    for (const view of this.views) view.touch(op);
  }

  /** Seconds of work of the run, without pauses. */
  get seconds() {
    const { status, seconds = 0 } = this.status;
    return seconds + (status === "running" ? (performance.now() - this.statusAt) / 1000 : 0);
  }

  /**
   * Seconds since the latest op of a row; 0 if it came with a snapshot.
   *
   * @param {string} id
   */
  silence(id) {
    const heard = this.heard.get(id);
    return heard === undefined ? 0 : (performance.now() - heard) / 1000;
  }

  /** @param {Card} card */
  isOpen(card) {
    return card.state === "asked" && this.sent.get(card.id) !== card.again;
  }

  /**
   * Send a message; returns false if the kernel is gone, when the model has no comm.
   *
   * @param {object} message
   */
  send(message) {
    try {
      this.model.send(message);
      return true;
    } catch {
      this.#leave();
      return false;
    }
  }

  #leave() {
    this.gone = true;
    this.abandon(`The kernel that ran this is gone. ${GONE}`);
    for (const view of this.views) view.reset();
  }

  /**
   * Approve cards together, as they were asked for.
   *
   * @param {Card[]} cards
   */
  approve(cards) {
    const open = cards.filter((card) => this.isOpen(card));
    if (!open.length || !this.send({ kind: "approve", ids: open.map(({ id }) => id) })) return;
    for (const card of open) this.sent.set(card.id, card.again);
    for (const view of this.views) view.touch({ op: "card", card: open[0] });
  }

  /**
   * @param {Card} card
   * @param {string} decision
   * @param {object} more
   */
  decide(card, decision, more) {
    if (!this.isOpen(card)) return;
    if (this.send({ kind: "answer", id: card.id, decision, ...more })) this.sent.set(card.id, card.again);
    for (const view of this.views) view.touch({ op: "card", card });
  }
}
