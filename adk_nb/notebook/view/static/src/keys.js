// Keyboard shortcuts of the view, which move the focus; none of them answers a card.

import { setAttribute } from "./elements.js";

/** @import { View } from "./view.js" */

export class Keys {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    view.root.addEventListener("keydown", (event) => this.onKey(event), true);
    setAttribute(view.root, "aria-keyshortcuts", "/ s w Escape");
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (!(event.target instanceof Element)) return;
    if (event.target.closest("input, textarea, select, [contenteditable], .adknb-form")) return;
    if (!this.handle(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key */
  handle(key) {
    const { tabs, tools } = this.view;
    if (key === "Escape") {
      this.view.leave();
      return true;
    }
    const name = { "/": "events", s: "state", w: "waterfall" }[key];
    const panel = tabs.panels.find((each) => each.name === name && each.exists);
    if (!panel || !this.view.store.rows.size) return false;
    this.view.unfold();
    tabs.select(panel, key !== "/");
    this.view.paint();
    if (key === "/") tools.filter.focus();
    return true;
  }
}
