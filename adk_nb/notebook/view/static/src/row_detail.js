// The details of an opened row: state changes, its events as a tree, and buttons.

import { button, copyButton, el } from "./elements.js";
import { toolFailure } from "./error_cards.js";
import { jsonTree } from "./json_tree.js";
import { changeLine } from "./state_panel.js";

/** @import { Row } from "./types" */
/** @import { Store } from "./store.js" */

export class RowDetail {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
  }

  /** @param {Row} row */
  exists(row) {
    return Boolean(row.failure || row.detail || row.changes?.length || this.store.offers.includes("event"));
  }

  /** @param {Row} row */
  request(row) {
    if (this.store.offers.includes("event")) this.store.send({ kind: "need", what: "event", id: row.id });
  }

  /** @param {Row} row */
  node(row) {
    const changes = (row.changes ?? []).map((change) => changeLine(change.key, change.kind, change.old, change.new));
    const events = this.store.panels.get(`event/${row.id}`);
    return el(
      "div",
      "detail",
      row.failure ? toolFailure(row.failure) : null,
      changes.length ? el("div", "changes", el("div", "dim", "state changed by this event"), ...changes) : null,
      ...(events ? this.eventParts(row, events) : [row.detail && !row.failure ? el("pre", "json", row.detail) : null]),
    );
  }

  /**
   * @param {Row} row
   * @param {any[]} events
   */
  eventParts(row, events) {
    const copy = copyButton("Copy JSON", () => events.map((each) => JSON.stringify(each, null, 2)).join("\n"));
    const rerun =
      this.store.offers.includes("rerun") && !this.store.gone && this.store.status.status !== "running"
        ? button("Rerun from here", "small", () => this.store.send({ kind: "rerun", event: row.id.split("/")[0] }))
        : null;
    if (rerun) rerun.title = "Ask again with the session as it was before this event; this conversation is kept";
    return [
      el("div", "detail-buttons", copy, rerun),
      ...events.map((event, at) =>
        jsonTree(event, events.length > 1 ? `event ${at + 1}` : "event", at === events.length - 1),
      ),
    ];
  }
}
