// The lanes: a line for each of several agents that work at once, with its latest text.

import { el, setLabel } from "./elements.js";
import { STATES } from "./words.js";

/** @import { Row } from "./types" */
/** @import { Store } from "./store.js" */

export class Lanes {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.nodes = new Map(); // lane id -> {node, drawn}
    this.node = el("ul", "lanes");
    setLabel(this.node, "Working at once");
    this.node.tabIndex = 0; // focusable, so that it can be scrolled by keyboard
  }

  paint() {
    const { lanes, last, rows } = this.store;
    this.node.hidden = lanes.size < 2;
    if (this.node.hidden) return;
    for (const lane of lanes.values()) {
      const words = this.words(rows.get(last.get(lane.id) ?? ""));
      const drawn = `${lane.state} ${words}`;
      const known = this.nodes.get(lane.id);
      if (known?.drawn === drawn) continue;
      const [icon, word] = STATES[lane.state] ?? ["", ""];
      const stands = el("span", "stands", el("span", "icon", icon), ` ${word}`);
      const node = el("li", "lane", stands, el("span", "author", lane.label), el("span", "words", words));
      node.dataset.mark = lane.state;
      node.dataset.lane = String(this.color(lane.id));
      if (known) known.node.replaceWith(node);
      else this.node.append(node);
      this.nodes.set(lane.id, { node, drawn });
    }
  }

  /** @param {Row | undefined} row */
  words(row) {
    if (!row) return "";
    if (row.kind === "call") return `⚙ ${row.tool}(${row.args}) ${row.result ?? row.text}`;
    return row.text.trim().split("\n").pop();
  }

  /**
   * The colour number of a lane.
   *
   * @param {string} lane
   */
  color(lane) {
    return [...this.store.lanes.keys()].indexOf(lane) % 4;
  }
}
