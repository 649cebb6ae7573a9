// A conversation: bubbles, what can be done about each, and a field. It draws plain data, a `Talk` of types.d.ts, and emits
// actions; it knows nothing of the page that it stands in.

import { button, el, put, setAttribute, setLabel } from "../elements.js";
import { count } from "../words.js";
import { Composer } from "./composer.js";
import { TurnNode } from "./turn.js";

/** @import { Action, Host, Talk, Turn } from "./types" */

const NEAR = 40; // pixels from the end at which a reader follows

export class Chat {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    /** @type {Map<string, TurnNode>} */
    this.turns = new Map();
    this.follows = true;
    this.empty = el("div", "talk-empty");
    this.earlier = el("div", "earlier");
    this.list = el("div", "talk-list");
    this.inner = el("div", "talk-inner", this.earlier, this.empty, this.list);
    this.scroller = el("div", "talk", this.inner);
    this.scroller.tabIndex = 0;
    setAttribute(this.scroller, "role", "log");
    setAttribute(this.scroller, "aria-live", "off"); // the host announces whole sentences
    setLabel(this.scroller, "Conversation");
    this.scroller.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.scroller;
      this.follows = scrollHeight - scrollTop - clientHeight < NEAR;
      this.down.hidden = this.follows;
    });
    this.down = button("↓", "to-end", () => this.toEnd());
    setLabel(this.down, "To the newest message");
    this.down.hidden = true;
    this.slot = el("div", "talk-slot"); // for what the host shows above the field
    const typing = { ...host, emit: (/** @type {Action} */ action) => this.#emit(action) };
    this.composer = new Composer(typing);
    this.typing = typing;
    this.sized = new ResizeObserver(() => {
      if (this.follows) this.#scrollToEnd();
    });
    this.sized.observe(this.inner);
    this.sized.observe(this.scroller);
    this.node = el("div", "chat", el("div", "talk-frame", this.scroller, this.down), this.slot, this.composer.node);
    this.composer.attach.listen(this.node);
    this.node.addEventListener("keydown", (event) => {
      event.stopPropagation(); // keys are for the conversation, not for the page around it
      if (event.key === "Escape") host.leave();
    });
  }

  /** @param {Action} action */
  #emit(action) {
    if (!this.host.emit(action)) return false;
    this.composer.input.focus();
    return true;
  }

  toEnd() {
    this.follows = true;
    this.#scrollToEnd();
    this.composer.input.focus();
  }

  #scrollToEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.down.hidden = true;
  }

  /** @param {Talk} talk */
  paint(talk) {
    this.earlier.textContent = talk.earlier ? `${count(talk.earlier, "earlier message")} above are not shown` : "";
    this.#paintEmpty(talk);
    const left = new Set(this.turns.keys());
    const last = talk.turns.at(-1);
    for (const turn of talk.turns) {
      left.delete(turn.id);
      this.#paintTurn(turn, talk, turn === last);
    }
    for (const id of left) {
      this.turns.get(id)?.remove();
      this.turns.delete(id);
    }
    this.node.toggleAttribute("data-gone", talk.gone);
    this.composer.paint(talk);
  }

  /**
   * @param {Turn} turn
   * @param {Talk} talk
   * @param {boolean} isLast
   */
  #paintTurn(turn, talk, isLast) {
    let node = this.turns.get(turn.id);
    if (!node) {
      node = new TurnNode(this.typing, (change) => this.#unfold(change));
      this.turns.set(turn.id, node);
      this.list.append(node.node);
    } else if (isLast && this.list.lastElementChild !== node.node) this.list.append(node.node);
    if (node.turn !== turn) node.paint(turn, talk);
  }

  /**
   * Change the height of something without moving what is read.
   *
   * @param {() => void} change
   */
  #unfold(change) {
    this.follows = false;
    change();
  }

  /** @param {Talk} talk */
  #paintEmpty({ agent, description, suggestions, turns, gone }) {
    this.empty.hidden = turns.length > 0;
    const drawn = JSON.stringify([agent, description, suggestions]);
    if (this.empty.hidden || this.empty.dataset.drawn === drawn) return;
    this.empty.dataset.drawn = drawn;
    const chips = suggestions.map((text) => button(text, "suggestion", () => this.composer.fill(text)));
    put(
      this.empty,
      el("div", "talk-agent", agent),
      description ? el("div", "dim", description) : null,
      chips.length && !gone ? el("div", "suggestions", ...chips) : null,
    );
  }

  remove() {
    this.sized.disconnect();
    for (const turn of this.turns.values()) turn.close();
  }
}
