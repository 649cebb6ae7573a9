// Where the focus goes when what had it is gone: a card that was answered, or an output that Jupyter draws again.

/** @import { View } from "./view.js" */

export class Focus {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    /** @type {string | null} Id of a card that was answered, until the focus has moved on from it. */
    this.answered = null;
    /** @type {HTMLElement | null} What has the focus in the view, also while Jupyter draws the output again. */
    this.last = null;
    this.moved = false;
    for (const node of [view.root, view.summary.node]) node.tabIndex = -1;
    view.box.addEventListener("focusin", ({ target }) => {
      this.last = target instanceof HTMLElement ? target : null;
    });
    view.box.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget instanceof Node && !view.box.contains(relatedTarget)) this.last = null;
    });
  }

  /**
   * The card `id`, which has the focus, was answered: with the next paint the focus moves on.
   *
   * @param {string} id
   */
  handOn(id) {
    this.answered = id;
  }

  // Move it to the next card, else to the field of a box, else to the frame, and from there to the answer.
  paint() {
    if (this.answered === null) return;
    const { root, summary, cards, chatBox, store } = this.view;
    const active = document.activeElement;
    const isFree = !active || active === document.body || active === root || cards.isIn(this.answered, active);
    if (!isFree || cards.focusNext(this.answered)) {
      this.answered = null;
      return;
    }
    const place = chatBox?.field ?? (summary.folded ? summary.node : root);
    place.focus({ preventScroll: true });
    if (place !== root || ENDS.includes(store.status.status)) this.answered = null;
  }

  // Give it back after Jupyter has moved the view, unless the reader is somewhere else.
  restore() {
    if (!this.moved || !this.view.box.isConnected) return;
    this.moved = false;
    if (document.activeElement === document.body) this.last?.focus({ preventScroll: true });
  }
}

const ENDS = ["done", "error", "cancelled"];
