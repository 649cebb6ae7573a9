// The conversation of a chat box: its rows as turns, and what a reader does as messages to Python.

import { busyWith } from "./busy_cell.js";
import { asksNothing } from "./card_parts.js";
import { Chat } from "./chat/chat.js";
import { Turns } from "./chat_turns.js";
import { button, el, newId, put, setAttribute } from "./elements.js";
import { Events } from "./log.js";
import { drawFormulas } from "./markup.js";

/** @import { Action, Attachable, Attached, Talk, Turn } from "./chat/types" */
/** @import { Card, Op } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

const AT_ONCE = 400; // milliseconds after which a message waits for something
const PIECE = 1_500_000; // letters of base64 in a message, a multiple of 4; a Jupyter server takes ten megabytes at most

export class ChatBox {
  /**
   * @param {Store} store
   * @param {View} view
   */
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.turns = new Turns(store);
    /** @type {Map<string, Events>} The opened logs of turns, by the turns' ids. */
    this.opened = new Map();
    /** @type {{text: string, attached: string[], note: string} | null} A message that Python has not begun to answer. */
    this.sent = null;
    this.waiting = 0;
    this.chat = new Chat({
      emit: (action) => this.#act(action),
      details: (turn) => this.#details(turn),
      attachables: () => this.#attachables(),
      drawn: (node) => drawFormulas(node, store.manager),
      leave: () => view.leave(),
    });
    this.node = this.chat.node;
    this.chosen = el("select", "session");
    this.chosen.id = newId();
    this.chosen.addEventListener("change", () => {
      store.send({ kind: "session", name: this.chosen.value });
      this.field.focus();
    });
    const label = el("label", "hidden", "Session");
    label.htmlFor = this.chosen.id;
    this.fresh = button("New", "small", () => {
      store.send({ kind: "session", name: "" });
      this.field.focus();
    });
    this.fresh.title = "A new session";
    this.panels = button("Panels", "small", () => view.showPanels(!view.panelsShown));
    this.panels.title = "Events, state and the other panels of this conversation";
    this.head = el("span", "box-head", label, this.chosen, this.fresh, this.panels);
  }

  reset() {
    this.turns.reset();
    for (const events of this.opened.values()) events.reset();
    if (this.store.rows.size || this.store.gone) this.#arrived();
  }

  /** @param {Op} op */
  touch(op) {
    this.turns.touch(op);
    for (const events of this.opened.values()) events.touch(op);
    if (op.op === "append" && op.row.kind === "user") this.#arrived();
  }

  paint() {
    const { box } = this.store;
    const { current = "", names = [] } = box?.sessions ?? {};
    const drawn = JSON.stringify([current, names]);
    if (this.chosen.dataset.drawn !== drawn) {
      put(this.chosen, ...names.map((name) => new Option(name, name, false, name === current)));
      this.chosen.dataset.drawn = drawn;
    }
    this.chosen.value = current;
    this.chosen.disabled = this.fresh.disabled = this.isBusy || this.store.gone;
    this.chosen.hidden = this.fresh.hidden = !names.length;
    setAttribute(this.panels, "aria-pressed", String(this.view.panelsShown));
    this.chat.paint(this.talk);
    for (const events of this.opened.values()) events.paint()();
  }

  /** Seconds that run, in the opened logs. */
  tick() {
    for (const events of this.opened.values()) events.tick();
  }

  get field() {
    return this.chat.composer.input;
  }

  get isBusy() {
    return this.sent !== null || this.store.status.status === "running";
  }

  /** @returns {Talk} */
  get talk() {
    const { store } = this;
    const turns = this.turns.take();
    const {
      agent = store.title,
      description = "",
      models = {},
      suggestions = [],
      attaches = false,
      most = 0,
    } = store.box ?? {};
    return {
      agent,
      description,
      models,
      turns: this.sent ? [...turns, this.#sentTurn(this.sent)] : turns,
      earlier: store.earlier ? store.earlier : 0,
      suggestions,
      running: store.status.status === "running",
      stopping: this.view.stopping,
      reason: this.reason,
      answers: [...store.cards.values()].some((card) => card.kind === "input" && store.isOpen(card)),
      gone: store.gone,
      attaches,
      most,
    };
  }

  /**
   * @param {{text: string, attached: string[], note: string}} sent
   * @returns {Turn}
   */
  #sentTurn({ text, attached, note }) {
    const waits = this.store.box?.waiting ? `waiting for ${this.store.box.waiting}` : note;
    const asked = { who: "you", text, attached, pieces: [] };
    return {
      id: "sent",
      asked,
      parts: [],
      running: !waits,
      note: waits,
      repeats: false,
      retries: false,
      detailed: false,
    };
  }

  // Why no message can be sent now; empty if one can.
  get reason() {
    const { status, cards, box, gone } = this.store;
    if (gone) return "The kernel is gone: run the cell again.";
    if ([...cards.values()].some((card) => this.store.isOpen(card) && !this.isTypedHere(card)))
      return "Answer the card above first.";
    if (this.sent) return "Sent; the kernel answers when it is free.";
    return status.status === "running" && !box?.elsewhere ? "Wait for the answer, or stop it." : "";
  }

  /**
   * True for a card that does not block the field: a question, which the text answers, and an error.
   *
   * @param {Card} card
   */
  isTypedHere(card) {
    return asksNothing(card) || (card.kind === "input" && !card.tool);
  }

  /** @param {Action} action */
  #act(action) {
    if (action.kind === "stop") {
      this.view.stopNow();
      return true;
    }
    if (this.reason) return false;
    if (action.kind === "send")
      return this.#send(
        { kind: "ask", text: action.text, attach: this.#uploaded(action.attach) },
        action.text,
        action.attach,
      );
    const turn = this.turns.take().find((each) => each.id === action.turn);
    const text = action.kind === "edit" ? action.text : (turn?.asked?.text ?? "");
    if (action.turn.startsWith("refused")) return this.#send({ kind: "ask", text, attach: [] }, text);
    const event = action.turn.split("/")[0];
    return this.#send({ kind: "again", event, text: action.kind === "edit" ? text : null }, text);
  }

  /**
   * Send the files among what is attached; returns what stands for each in a message.
   *
   * @param {Attached[]} attach
   */
  #uploaded(attach) {
    return attach.map(({ name, data }) => {
      if (data === null) return name;
      const id = newId();
      for (let at = 0; at === 0 || at < data.length; at += PIECE)
        if (!this.store.send({ kind: "file", id, data: data.slice(at, at + PIECE) })) break;
      return { name, file: id };
    });
  }

  /**
   * @param {object} message
   * @param {string} text
   * @param {Attached[]} attach
   */
  #send(message, text, attach = []) {
    if (!this.store.send(message)) return false;
    this.sent = { text, attached: attach.map(({ name }) => name), note: "" };
    this.chat.follows = true;
    this.waiting = window.setTimeout(() => {
      if (!this.sent) return;
      const cell = busyWith(this.store.manager);
      this.sent = { ...this.sent, note: cell ? `waiting for ${cell}` : "" };
      this.view.repaint();
    }, AT_ONCE);
    this.view.repaint();
    return true;
  }

  // Python answers the message, or says why it does not.
  #arrived() {
    clearTimeout(this.waiting);
    this.sent = null;
  }

  /** @param {string} turn */
  #details(turn) {
    const events = new Events(this.store, this.view, (id) => this.turns.isIn(turn, id));
    this.opened.set(turn, events);
    events.reset();
    events.paint();
    return { node: events.node, close: () => void this.opened.delete(turn) };
  }

  /** @returns {Promise<Attachable[]>} */
  #attachables() {
    const id = newId(); // asked anew each time: variables come and go
    return new Promise((done) => {
      this.store.need("attachables", id, done);
    });
  }

  remove() {
    clearTimeout(this.waiting);
    this.chat.remove();
  }
}
