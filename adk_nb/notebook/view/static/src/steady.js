// A card that has just appeared or moved takes no click, and one that has just appeared no key: they were meant for what
// was there before.

const QUIET = 500; // milliseconds without a move
const LOOK = 100; // milliseconds between two looks at where the cards are

/**
 * @typedef {object} Place
 * @property {string} card Where the card is on the screen.
 * @property {string} buttons Where its buttons are.
 * @property {string} id Id of the card.
 * @property {number} changed When the card or one of its buttons did.
 */

export class Steady {
  constructor() {
    /** @type {Map<HTMLElement, Place>} The open cards. */
    this.places = new Map();
    /** @type {Map<string, number>} Id of a card -> when it appeared: drawn again, it is the same card. */
    this.appeared = new Map();
    this.looking = 0;
    this.onScroll = () => this.look();
    /** @type {HTMLElement | null} What had the focus when its button was turned off. */
    this.focused = null;
  }

  /**
   * Watch these cards, and no others.
   *
   * @param {Map<string, HTMLElement>} cards By their ids.
   */
  watch(cards) {
    const nodes = [...cards.values()];
    for (const node of this.places.keys()) if (!nodes.includes(node)) this.places.delete(node);
    for (const id of this.appeared.keys()) if (!cards.has(id)) this.appeared.delete(id);
    for (const [id, node] of cards) {
      if (!this.appeared.has(id)) this.appeared.set(id, performance.now());
      if (!this.places.has(node)) this.places.set(node, { card: "", buttons: "", changed: 0, id });
    }
    if (!cards.size) this.stop();
    else if (!this.looking) {
      this.looking = window.setInterval(() => this.look(), LOOK);
      document.addEventListener("scroll", this.onScroll, true);
    }
    this.look();
  }

  stop() {
    window.clearInterval(this.looking);
    document.removeEventListener("scroll", this.onScroll, true);
    this.looking = 0;
  }

  look() {
    const now = performance.now();
    for (const [node, place] of this.places) {
      const card = placeOf(node);
      const buttons = [...node.querySelectorAll("button")].map(placeOf).join(" ");
      if (card !== place.card || buttons !== place.buttons) place.changed = now;
      place.card = card;
      place.buttons = buttons;
      this.#turn(node, now - place.changed < QUIET);
    }
  }

  /**
   * Turn the buttons of a card off or on; what has the focus has it again when they are on.
   *
   * @param {HTMLElement} node
   * @param {boolean} off
   */
  #turn(node, off) {
    const active = document.activeElement;
    for (const row of node.querySelectorAll("fieldset.adknb-buttons")) {
      if (!(row instanceof HTMLFieldSetElement)) continue;
      if (off && active instanceof HTMLElement && row.contains(active)) this.focused = active;
      row.disabled = off;
    }
    if (off || !this.focused || !node.contains(this.focused)) return;
    if (!active || active === document.body || active === node) this.focused.focus({ preventScroll: true });
    this.focused = null;
  }

  /**
   * Give an element of a card the focus, at once or when its button is on; until then the card has it.
   *
   * @param {HTMLElement} element
   */
  focus(element) {
    element.focus();
    if (document.activeElement === element) return;
    this.focused = element;
    const card = element.closest(".adknb-card");
    if (card instanceof HTMLElement) card.focus();
  }

  /**
   * Give the focus to a card or a field in it; it takes keys as if the card had just appeared: the reader may still press
   * some for another one.
   *
   * @param {HTMLElement} card
   * @param {HTMLElement} element
   */
  handTo(card, element) {
    const place = this.places.get(card);
    if (place) this.appeared.set(place.id, performance.now());
    element.focus();
  }

  /**
   * Keep clicks and keys from a card that is not steady yet, and keys that are held down.
   *
   * @param {HTMLElement} node
   */
  guard(node) {
    /** @param {Event} event */
    const check = (event) => {
      if (this.#takes(node, event)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    node.addEventListener("click", check, true);
    node.addEventListener("keydown", check, true);
  }

  /**
   * @param {HTMLElement} node
   * @param {Event} event
   */
  #takes(node, event) {
    const target = event.target instanceof Element ? event.target : node;
    const isButton = target.closest("button, a") !== null;
    const at = event.timeStamp; // when the hand moved: a busy page hears of it later
    this.look();
    const place = this.places.get(node);
    if (!place) return true;
    if (!(event instanceof KeyboardEvent)) return !isButton || at - place.changed >= QUIET;
    if (event.key !== "Enter" && !(event.key === " " && isButton)) return true;
    // Keys follow the focus, wherever the card moves to.
    return !event.repeat && at - (this.appeared.get(place.id) ?? 0) >= QUIET;
  }
}

/** @param {Element} node */
function placeOf(node) {
  const { left, top, width, height } = node.getBoundingClientRect();
  return node instanceof HTMLButtonElement
    ? [left, top, width, height].map(Math.round).join()
    : [left, top].map(Math.round).join();
}
