// The state of the session beside the log, each key with its change.

import { el, put, setAttribute, setLabel } from "./elements.js";
import { MARKS, valueText } from "./words.js";

/** @import { Store } from "./store.js" */

export class StatePanel {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.node = el("div", "state");
    setAttribute(this.node, "role", "group"); // no landmark: a page may have many views
    setLabel(this.node, "State");
    this.node.tabIndex = 0;
  }

  paint() {
    const { state, cards } = this.store;
    const changed = state.some((entry) => entry.kind);
    const asks = [...cards.values()].some((card) => card.kind !== "wait" && this.store.isOpen(card));
    this.node.hidden = !state.length || (asks && !changed); // a card needs the room
    if (this.node.hidden) return;
    const head = el(
      "div",
      "pane-head",
      "State",
      changed ? el("span", "dim", this.store.box ? " · changes since it began" : " · changes this turn") : null,
    );
    put(this.node, head, ...state.map((entry) => changeLine(entry.key, entry.kind, entry.old, entry.value)));
  }
}

/**
 * @param {string} key
 * @param {string} kind
 * @param {string | null | undefined} old
 * @param {string | null | undefined} now
 */
export function changeLine(key, kind, old, now) {
  const [before, after] = [old, now].map((text) => valueText(text ?? ""));
  const value = kind === "~" ? `${before} → ${after}` : kind === "-" ? before : after;
  const mark = el("span", "mark", kind || " ");
  const node = el("div", "entry", mark, el("span", "key", key), el("span", "value", value));
  node.dataset.mark = kind || "";
  if (MARKS[kind]) mark.append(el("span", "hidden", ` ${MARKS[kind]}`));
  return node;
}
