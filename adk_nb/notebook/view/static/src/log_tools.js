// The tools beside the tabs: filter the log, copy it, save it.

import { button, copyButton, download, el, setAttribute, setLabel } from "./elements.js";
import { rowLine } from "./row_text.js";

/** @import { Op } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

export class LogTools {
  /**
   * @param {Store} store
   * @param {View} view
   */
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.filter = el("input", "input filter");
    this.filter.type = "search";
    this.filter.placeholder = "filter";
    setLabel(this.filter, "Filter the events");
    this.filter.addEventListener("input", () => view.events.narrow(this.filter.value));
    this.filter.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Escape") return;
      if (!this.filter.value) view.leave();
      this.filter.value = "";
      view.events.narrow("");
    });
    this.count = el("span", "dim found");
    setAttribute(this.count, "role", "status");
    this.copy = copyButton("Copy", () => view.events.matches().map(rowLine).join("\n"));
    this.copy.title = "Copy the log, as it is shown";
    this.save = button("⤓", "small", () => this.download());
    this.save.title = "Download the events as JSON lines";
    setLabel(this.save, this.save.title);
    this.node = el("div", "log-tools", this.count, this.filter, this.copy, this.save);
  }

  /**
   * @param {number | null} count
   * @param {boolean} folded
   */
  paint(count, folded) {
    this.node.hidden = folded || this.view.tabs.current !== this.view.log || !this.store.rows.size;
    this.count.textContent = count === null ? "" : `${count} of ${this.store.rows.size}`;
  }

  // Python sends the complete events; without a kernel, the rows of the page are saved.
  download() {
    this.waits = this.store.offers.includes("log") && this.store.send({ kind: "need", what: "log" });
    if (!this.waits) this.keep([...this.store.rows.values()].map((row) => JSON.stringify(row)).join("\n"));
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op !== "panel" || op.name !== "log" || !this.waits) return;
    this.waits = false;
    this.keep(op.data);
  }

  /** @param {any} lines */
  keep(lines) {
    download("events.jsonl", "application/jsonl", `${lines}\n`);
  }
}
