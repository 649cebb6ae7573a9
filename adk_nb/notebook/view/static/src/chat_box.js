// The input field below a conversation. Text that is typed while a turn runs stays in the field.

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
    this.sendButton = button("Send", "go", () => this.submit());
    const label = el("label", "hidden", `Message to ${store.title}`);
    label.htmlFor = this.input.id;
    this.node = el("div", "composer", label, this.input, this.sendButton, this.hint);
    this.node.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Why no message can be sent now; empty if one can.
  get reason() {
    const { status, cards } = this.store;
    if (this.store.gone) return "The kernel is gone: run the cell again.";
    if ([...cards.values()].some((card) => this.store.isOpen(card) && !this.isTypedHere(card)))
      return "Answer the card above first.";
    if (this.waits) return "Sent; the kernel answers when it is free.";
    return status.status === "running" ? "Wait for the answer, or stop it." : "";
  }

  /**
   * True for a card that does not block the field: a question, which the text answers, and an error.
   *
   * @param {Card} card
   */
  isTypedHere(card) {
    return ["error", "wait"].includes(card.kind) || (card.kind === "input" && !card.tool);
  }

  paint() {
    const { reason } = this;
    const asks = [...this.store.cards.values()].some((card) => card.kind === "input" && this.store.isOpen(card));
    this.sendButton.disabled = Boolean(reason);
    this.input.disabled = Boolean(this.store.gone);
    this.hint.textContent = reason || `Enter sends${asks ? " your answer" : ""}, Shift+Enter makes a new line.`;
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "status") this.waits = false;
  }

  submit() {
    const text = this.input.value;
    if (!text.trim() || this.reason) return;
    if (!this.store.send({ kind: "ask", text })) return;
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
   * Handle keys here, so that the notebook does not.
   *
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.view.leave();
    else if (event.key === "Enter" && event.target === this.input && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    }
  }
}
