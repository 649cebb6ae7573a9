// A message and the answers to it, with what can be done about them.

import { button, copyButton, el, put, setAttribute, setExpanded, setLabel } from "../elements.js";
import { resultPieces } from "../markup.js";
import { PartNode } from "./part.js";

/** @import { Host, Talk, Turn } from "./types" */

export class TurnNode {
  /**
   * @param {Host} host
   * @param {(change: () => void) => void} unfold
   */
  constructor(host, unfold) {
    this.host = host;
    this.unfold = unfold;
    /** @type {Turn | null} */
    this.turn = null;
    /** @type {Map<string, PartNode>} */
    this.parts = new Map();
    /** @type {{node: HTMLElement, close(): void} | null} */
    this.opened = null;
    this.asked = el("div", "talk-mine");
    this.note = el("div", "talk-note");
    this.question = el("div", "talk-question", this.asked, this.note);
    this.answers = el("div", "talk-parts");
    this.thinking = el("div", "talk-thinking", el("span", ""), el("span", ""), el("span", ""));
    setAttribute(this.thinking, "aria-hidden", "true");
    this.place = el("div", "talk-details");
    this.place.hidden = true;
    this.copy = copyButton("Copy", () => this.words);
    this.retry = button("Retry", "small again", () => host.emit({ kind: "retry", turn: this.turn?.id ?? "" }));
    this.edit = button("Edit", "small again", () => this.#startEdit());
    this.more = button("Details", "small", () => this.unfold(() => this.#toggle()));
    this.retry.title = "Send the message again, in a copy of the conversation that ends before it";
    this.edit.title = "Change the message, and send it in a copy of the conversation that ends before it";
    setExpanded(this.more, false);
    this.actions = el("div", "talk-actions", this.copy, this.retry, this.edit, this.more);
    this.node = el("div", "talk-turn", this.question, this.answers, this.thinking, this.actions, this.place);
  }

  /** The answers as they were written. */
  get words() {
    const said = this.turn?.parts.filter((part) => part.kind === "answer" && part.text) ?? [];
    return said.map((part) => part.text).join("\n\n");
  }

  /**
   * @param {Turn} turn
   * @param {Talk} talk
   */
  paint(turn, talk) {
    const before = this.turn;
    this.turn = turn;
    this.node.dataset.turn = turn.id;
    this.question.hidden = !turn.asked;
    if (turn.asked && before?.asked?.text !== turn.asked.text && !this.question.querySelector("textarea")) {
      const who = turn.asked.who === "you" ? null : el("div", "talk-head", el("b", "", turn.asked.who));
      const names = turn.asked.attached.map((name) => el("span", "attached-chip", name));
      const attached = names.length ? el("div", "attached", ...names) : null;
      put(this.asked, who, el("div", "text", turn.asked.text), attached, resultPieces(turn.asked.pieces));
    }
    this.note.textContent = turn.note;
    this.note.hidden = !turn.note;
    this.#paintParts(turn, talk);
    const isGrowing = turn.parts.some((part) => part.streaming);
    this.thinking.hidden = !turn.running || isGrowing;
    this.copy.hidden = !this.words;
    this.actions.hidden = turn.running || !(this.words || turn.repeats || turn.detailed) || !turn.parts.length;
    this.retry.hidden = !turn.retries;
    this.edit.hidden = !turn.repeats;
    this.more.hidden = !turn.detailed;
  }

  /**
   * @param {Turn} turn
   * @param {Talk} talk
   */
  #paintParts(turn, talk) {
    const left = new Set(this.parts.keys());
    let before = "";
    for (const part of turn.parts) {
      left.delete(part.id);
      let node = this.parts.get(part.id);
      if (!node) {
        node = new PartNode(this.host, this.unfold);
        this.parts.set(part.id, node);
        this.answers.append(node.node);
      }
      const named = (part.kind === "answer" || part.kind === "error") && part.who !== before;
      node.paint(part, { model: talk.models[part.who] ?? "", named, running: turn.running });
      if (part.kind !== "note") before = part.who;
    }
    for (const id of left) {
      this.parts.get(id)?.node.remove();
      this.parts.delete(id);
    }
    const order = turn.parts.map((part) => this.parts.get(part.id)?.node);
    for (const [at, node] of order.entries())
      if (node && this.answers.children[at] !== node)
        this.answers.insertBefore(node, this.answers.children[at] ?? null);
  }

  #startEdit() {
    if (!this.turn?.asked || this.question.querySelector("textarea")) return;
    const { id, asked } = this.turn;
    const field = el("textarea", "input talk-edit");
    field.value = asked.text;
    setLabel(field, "Your message");
    const end = () => {
      put(this.asked, ...bubble);
      this.edit.focus();
    };
    const send = () => {
      if (field.value.trim() && this.host.emit({ kind: "edit", turn: id, text: field.value })) end();
    };
    const bubble = [...this.asked.childNodes];
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        end();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    const buttons = el("div", "talk-edit-buttons", button("Cancel", "small", end), button("Send", "small go", send));
    put(this.asked, field, buttons);
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  #toggle() {
    if (this.opened) this.close();
    else {
      this.opened = this.host.details(this.turn?.id ?? "");
      put(this.place, this.opened?.node);
    }
    this.place.hidden = !this.opened;
    if (this.opened) this.place.scrollIntoView({ block: "nearest" });
    setExpanded(this.more, Boolean(this.opened));
  }

  close() {
    this.opened?.close();
    this.opened = null;
    this.place.replaceChildren();
  }

  remove() {
    this.close();
    this.node.remove();
  }
}
