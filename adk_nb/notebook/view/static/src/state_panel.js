// The state of the session, each key with what became of it.

import { el, put } from "./elements.js";
import { MARKS } from "./words.js";

export class StatePanel {
  constructor(store) {
    this.store = store;
    this.node = el("div", "state");
    this.node.setAttribute("role", "group"); // no landmark: a page may have many views
    this.node.setAttribute("aria-label", "State");
    this.node.tabIndex = 0;
  }

  paint() {
    const { state } = this.store;
    this.node.hidden = !state.length;
    if (!state.length) return;
    const head = el("div", "pane-head", "State");
    if (state.some((entry) => entry.kind)) head.append(el("span", "dim", " + ~ - against the start"));
    put(this.node, head, ...state.map((entry) => changeLine(entry.key, entry.kind, entry.old, entry.value)));
  }
}

export function changeLine(key, kind, old, now) {
  const value = kind === "~" ? `${old ?? ""} → ${now ?? ""}` : ((kind === "-" ? old : now) ?? "");
  const mark = el("span", "mark", kind || " ");
  const node = el("div", "entry", mark, el("span", "key", key), el("span", "value", value));
  node.dataset.mark = kind || "";
  if (MARKS[kind]) mark.append(el("span", "hidden", ` ${MARKS[kind]}`));
  return node;
}
