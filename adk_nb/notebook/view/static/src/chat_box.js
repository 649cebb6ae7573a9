// The field below a conversation: what is typed there is said. What stands in it while a turn runs is kept.

import { button, el, newId } from "./elements.js";

/** @import { Card, Op } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

const MOST_LINES = 8;

export class ChatBox {
  /**
   * @param {Store} store
   * @param {View} view
   */
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.input = el("textarea", "input say");
    this.input.rows = 1;
    this.input.id = newId();
    this.hint = el("div", "dim hint-line");
    this.hint.id = `${this.input.id}-hint`;
    this.input.setAttribute("aria-describedby", this.hint.id);
    this.input.addEventListener("input", () => this.grow());
    this.send = button("Send", "go", () => this.say());
    const label = el("label", "hidden", `Message to ${store.title}`);
    label.htmlFor = this.input.id;
    this.node = el("div", "composer", label, this.input, this.send, this.hint);
    this.node.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Why nothing can be said now; empty if something can.
  get reason() {
    const { status, cards } = this.store;
    if (this.store.gone) return "The kernel is gone: run the cell again.";
    if ([...cards.values()].some((card) => this.store.isOpen(card) && !this.isTypedHere(card)))
      return "Answer the card above first.";
    if (this.waits) return "Sent; the kernel answers when it is free.";
    return status.status === "running" ? "Wait for the answer, or stop it." : "";
  }

  /**
   * What is typed is the answer to a question, and no card of an error waits for it.
   *
   * @param {Card} card
   */
  isTypedHere(card) {
    return ["error", "wait"].includes(card.kind) || (card.kind === "input" && !card.tool);
  }

  paint() {
    const { reason } = this;
    const asks = [...this.store.cards.values()].some((card) => card.kind === "input" && this.store.isOpen(card));
    this.send.disabled = Boolean(reason);
    this.input.disabled = Boolean(this.store.gone);
    this.hint.textContent = reason || `Enter sends${asks ? " your answer" : ""}, Shift+Enter makes a new line.`;
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "status") this.waits = false;
  }

  say() {
    const text = this.input.value;
    if (!text.trim() || this.reason) return;
    if (!this.store.say({ kind: "ask", text })) return;
    this.input.value = "";
    this.waits = true;
    this.grow();
    this.paint();
    this.input.focus();
  }

  grow() {
    this.input.rows = Math.min(MOST_LINES, this.input.value.split("\n").length);
  }

  /**
   * No key that is typed here is the notebook's.
   *
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.view.leave();
    else if (event.key === "Enter" && event.target === this.input && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.say();
    }
  }
}
