// A run that ended well is read as its question and its answer; the rest is behind a button.

import { button, el, foldable, put } from "./elements.js";
import { isolated, lookedAt, markup } from "./markup.js";

export class Summary {
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.chosen = null; // what the reader wants; null: nothing said
    this.node = el("div", "summary");
    this.button = button("", "small fold", () => {
      this.chosen = !this.folded;
      view.stale = true;
      view.paint();
    });
  }

  // Whether all but question and answer is hidden.
  get folded() {
    const { answer, status, box, cards } = this.store;
    if (box || !answer || status.status !== "done" || [...cards.values()].some((card) => this.store.isOpen(card)))
      return false;
    return this.chosen ?? true;
  }

  paint() {
    const { folded } = this;
    const { answer, rows, earlier, status, box } = this.store;
    const count = rows.size + earlier;
    this.button.hidden = Boolean(box) || !answer || status.status !== "done";
    this.button.textContent = `${folded ? "▸" : "▾"} ${count.toLocaleString("en")} ${count === 1 ? "event" : "events"}`;
    this.button.setAttribute("aria-expanded", String(!folded));
    this.node.hidden = !folded;
    if (!folded || this.drawn === answer) return;
    this.drawn = answer;
    const asked = answer.question
      ? el("div", "asked", el("span", "author", "you"), foldable(el("div", "text", answer.question)))
      : null;
    const words = markup(answer.html, this.store.manager);
    words.append(...(answer.pages ?? []).map((page) => isolated(page)), lookedAt(answer.shown) ?? "");
    const members = (answer.members ?? []).map(({ who, text }) =>
      el("div", "asked member", el("span", "author", who), el("div", "text", text)),
    );
    put(this.node, asked, ...members, el("div", "answered", el("span", "author", answer.who), foldable(words)));
  }
}
