// The notices of a run: grey chips in the head, and below it the unfolded explanations.

import { el, newId, setAttribute, setExpanded } from "./elements.js";

/** @import { Store } from "./store.js" */

export class Notice {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Set<string>} Labels of clicked chips, whose explanations are toggled against Python's state. */
    this.toggled = new Set();
    this.chips = el("span", "chips");
    this.node = el("div", "notice");
    this.node.id = newId();
    setAttribute(this.node, "role", "note");
    this.painted = "[]";
  }

  paint() {
    const { notice, notices } = this.store;
    const open = notices.filter((entry) => this.#isOpen(entry));
    const lines = [notice, ...open.map(({ label, text }) => (label ? `${label}: ${text}` : text))].filter(Boolean);
    this.node.textContent = lines.join("\n");
    this.node.hidden = !lines.length;
    const labeled = notices.filter(({ label }) => label);
    if (JSON.stringify(labeled) === this.painted) return; // a chip keeps the focus
    this.painted = JSON.stringify(labeled);
    this.chips.replaceChildren(...labeled.map((entry) => this.#chip(entry)));
  }

  /** @param {Store["notices"][number]} notice */
  #isOpen({ label, folded }) {
    return folded === this.toggled.has(label);
  }

  /** @param {Store["notices"][number]} notice */
  #chip(notice) {
    const { label, text } = notice;
    const chip = el("button", "chip notice-chip", label);
    chip.type = "button";
    chip.title = text;
    setAttribute(chip, "aria-controls", this.node.id);
    const mark = () => setExpanded(chip, this.#isOpen(notice));
    chip.addEventListener("click", () => {
      if (!this.toggled.delete(label)) this.toggled.add(label);
      mark();
      this.paint();
    });
    mark();
    return chip;
  }
}
