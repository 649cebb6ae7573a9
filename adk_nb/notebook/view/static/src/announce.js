// The log for screen readers: a live region that gets whole sentences while an answer streams.

import { el, setAttribute } from "./elements.js";

/** @import { Op, Row } from "./types" */
/** @import { Store } from "./store.js" */

const SENTENCE = /^[\s\S]*[.!?…:;](?=\s)|^[\s\S]*\n/;
const MAX_LINES = 12;

export class Announcer {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, number>} Id of a streaming row -> the number of its characters that were announced. */
    this.begun = new Map();
    this.node = el("div", "hidden");
    setAttribute(this.node, "aria-live", "polite");
    setAttribute(this.node, "aria-relevant", "additions");
  }

  /** @param {Op} op */
  touch(op) {
    if (op.op === "status" && op.status !== "running") {
      for (const id of [...this.begun.keys()]) this.rest(this.store.rows.get(id));
    }
    const row = this.store.rows.get(op.id ?? op.row?.id);
    if (!row) return;
    if (op.op === "append" && row.kind !== "user" && !row.streaming) this.whole(row);
    else if (op.op === "text") this.sentences(row);
    else if (op.op === "patch") this.#patched(op, row);
  }

  /**
   * @param {Op} op
   * @param {Row} row
   */
  #patched(op, row) {
    if (this.begun.has(row.id)) this.rest(row);
    else if (op.kind === "marker") this.whole(row);
    else if (typeof op.ok === "boolean") this.say(`${row.tool} ${op.ok ? "is done" : "failed"}: ${row.result}`);
  }

  /** @param {Row} row */
  whole(row) {
    if (row.tool === "transfer_to_agent") return; // its result names the agent
    if (row.kind === "call") this.say(`${row.author} calls ${row.tool}`);
    else if (row.text) this.say(`${row.author}${row.kind === "error" ? ", error" : ""}: ${row.text}`);
  }

  /** @param {Row} row */
  sentences(row) {
    const spoken = this.begun.get(row.id) ?? 0;
    const found = SENTENCE.exec(row.text.slice(spoken))?.[0];
    this.begun.set(row.id, spoken + (found?.length ?? 0));
    if (found) this.say(spoken ? found : `${row.author}: ${found}`);
  }

  /** @param {Row | undefined} row */
  rest(row) {
    if (!row) return;
    const spoken = this.begun.get(row.id) ?? 0;
    this.begun.delete(row.id);
    const left = row.text.slice(spoken);
    if (left.trim()) this.say(spoken ? left : `${row.author}: ${left}`);
  }

  /** @param {string} text */
  say(text) {
    this.node.append(
      el(
        "div",
        "",
        text
          .replace(/[*`|]+|^#+ /gm, "")
          .trim()
          .slice(0, 500),
      ),
    );
    while (this.node.childElementCount > MAX_LINES) this.node.firstChild?.remove();
  }
}
