// What goes with a message: names of files and variables, chosen from a list.

import { button, el, newId, put } from "../elements.js";

/** @import { Attachable, Host } from "./types" */

const MOST = 200; // names in the list

export class Attach {
  /**
   * @param {Host} host
   * @param {() => void} done Called when the list is closed.
   */
  constructor(host, done) {
    this.host = host;
    this.done = done;
    /** @type {string[]} */
    this.names = [];
    /** @type {Attachable[]} */
    this.known = [];
    this.button = button("Attach", "small attach", () => void this.#toggle());
    this.button.title = "A file of this folder or a variable of the notebook";
    this.button.setAttribute("aria-expanded", "false");
    this.chips = el("div", "attached");
    this.search = el("input", "input attach-search");
    this.search.setAttribute("aria-label", "Find a file or a variable");
    this.search.placeholder = "Find a file or a variable";
    this.search.addEventListener("input", () => this.#paintList());
    this.list = el("div", "attach-list");
    this.panel = el("div", "attach-panel", this.search, this.list);
    this.panel.id = newId();
    this.panel.hidden = true;
    this.panel.setAttribute("role", "group");
    this.panel.setAttribute("aria-label", "Attach");
    this.button.setAttribute("aria-controls", this.panel.id);
    this.panel.addEventListener("keydown", (event) => this.#onKey(event));
    this.paint();
  }

  async #toggle() {
    if (!this.panel.hidden) {
      this.close();
      return;
    }
    this.panel.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.search.value = "";
    this.search.focus();
    put(this.list, el("div", "dim", "…"));
    this.known = await this.host.attachables();
    this.#paintList();
  }

  close() {
    this.panel.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    this.done();
  }

  #paintList() {
    const words = this.search.value.trim().toLowerCase();
    const found = this.known.filter(({ name }) => name.toLowerCase().includes(words) && !this.names.includes(name));
    const rows = found.slice(0, MOST).map(({ name, kind }) => {
      const row = button("", "attach-row", () => this.add(name));
      row.append(el("span", "attach-name", name), el("span", "dim", kind));
      return row;
    });
    put(this.list, ...(rows.length ? rows : [el("div", "dim attach-none", "There is nothing of that name.")]));
  }

  /** @param {string} name */
  add(name) {
    this.names = [...this.names, name];
    this.paint();
    this.close();
  }

  /** Take what is attached, for a message that is sent. */
  take() {
    const { names } = this;
    this.names = [];
    this.paint();
    return names;
  }

  paint() {
    const chips = this.names.map((name) => {
      const chip = button("", "attached-chip", () => {
        this.names = this.names.filter((each) => each !== name);
        this.paint();
        this.done();
      });
      chip.append(el("span", "attached-name", name), el("span", "", "×"));
      chip.setAttribute("aria-label", `Do not attach ${name}`);
      return chip;
    });
    put(this.chips, ...chips);
    this.chips.hidden = !chips.length;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const rows = [...this.list.querySelectorAll("button")];
    const at = rows.findIndex((row) => row === document.activeElement);
    const moves = /** @type {Record<string, number>} */ ({ ArrowDown: at + 1, ArrowUp: at - 1 });
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.search) rows[0]?.click();
    else if (event.key in moves) (rows[moves[event.key]] ?? this.search).focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
