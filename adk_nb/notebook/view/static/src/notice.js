// What has to be known of a run, in grey: a chip with its name, and the explanation once per notebook.

import { el, newId } from "./elements.js";

/** @import { Store } from "./store.js" */

const LONGEST_NAME = 60;
const explained = Symbol.for("adk_nb.explained"); // on the notebook's manager: notice -> the id of the run that explains it

export class Notice {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.text = "";
    this.open = true;
    this.chip = el("button", "chip notice-chip");
    this.chip.type = "button";
    this.chip.addEventListener("click", () => {
      this.open = !this.open;
      this.paint();
    });
    this.node = el("div", "notice");
    this.node.id = newId();
    this.node.setAttribute("role", "note");
    this.chip.setAttribute("aria-controls", this.node.id);
  }

  paint() {
    const { notice } = this.store;
    if (notice !== this.text) this.#take(notice);
    const { name } = this;
    this.chip.hidden = !name;
    this.chip.textContent = name;
    this.chip.title = notice;
    this.chip.setAttribute("aria-expanded", String(this.open));
    this.node.textContent = notice;
    this.node.hidden = !notice || !this.open;
  }

  /** `Offline stand-in` of `Offline stand-in: picks tools by keywords.`; empty: it has none, and always stands there. */
  get name() {
    const [name, rest] = this.text.split(/: (.*)/s, 2);
    return rest && name.length <= LONGEST_NAME && !name.includes("\n") ? name : "";
  }

  /** @param {string} notice */
  #take(notice) {
    this.text = notice;
    const manager = this.store.manager ?? {};
    manager[explained] ??= new Map();
    const known = manager[explained];
    if (notice && !known.has(notice)) known.set(notice, this.store.own_id);
    this.open = !this.name || known.get(notice) === this.store.own_id;
  }
}
