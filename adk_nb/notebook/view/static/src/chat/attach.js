// What goes with a message: names of files and variables, chosen from a list, and files of the reader's own disk.

import { button, el, newId, put, setAttribute, setExpanded, setLabel, shapeOf } from "../elements.js";
import { size } from "../words.js";

/** @import { Attachable, Attached, Host, Talk } from "./types" */

const MOST = 200; // names in the list

export class Attach {
  /**
   * @param {Host} host
   * @param {() => void} done Called when the list is closed.
   */
  constructor(host, done) {
    this.host = host;
    this.done = done;
    /** @type {Attached[]} */
    this.items = [];
    this.most = 0; // bytes of all files
    /** @type {Promise<void> | null} Ends when the files that are read have been added. */
    this.reading = null;
    /** @type {Attachable[]} */
    this.known = [];
    this.button = button("", "small attach", () => void this.#toggle());
    this.button.append(clip(), el("span", "attach-word", "Attach"));
    this.button.title =
      "Files of your computer or of the kernel's folder, variables of the notebook; drop or paste files here";
    setExpanded(this.button, false);
    this.chips = el("div", "attached");
    this.note = el("div", "attach-note bad");
    setAttribute(this.note, "role", "status");
    this.picker = el("input", "");
    Object.assign(this.picker, { type: "file", multiple: true, hidden: true });
    this.picker.addEventListener("change", () => {
      this.addFiles([...(this.picker.files ?? [])]);
      this.picker.value = ""; // the same file can be chosen again
      this.close();
    });
    this.own = button("", "small attach-own", () => this.picker.click());
    this.search = el("input", "input attach-search");
    setLabel(this.search, "Find a file or a variable");
    this.search.placeholder = "Find a file or a variable";
    this.search.addEventListener("input", () => this.#paintList());
    this.list = el("div", "attach-list");
    this.panel = el("div", "attach-panel", this.own, this.picker, this.search, this.list);
    this.panel.id = newId();
    this.panel.hidden = true;
    setAttribute(this.panel, "role", "group");
    setLabel(this.panel, "Attach");
    setAttribute(this.button, "aria-controls", this.panel.id);
    this.panel.addEventListener("keydown", (event) => this.#onKey(event));
    this.#paintChips();
  }

  /** @param {Talk} talk */
  paint({ attaches, gone, most }) {
    this.takes = attaches && !gone;
    this.button.hidden = !this.takes;
    this.most = most;
    this.own.textContent = `Choose files of your computer… (${size(most)} a message)`;
  }

  async #toggle() {
    if (!this.panel.hidden) {
      this.close();
      return;
    }
    this.panel.hidden = false;
    setExpanded(this.button, true);
    this.search.value = "";
    this.search.focus();
    put(this.list, el("div", "dim", "…"));
    this.known = await this.host.attachables();
    this.#paintList();
  }

  close() {
    this.panel.hidden = true;
    setExpanded(this.button, false);
    this.done();
  }

  #paintList() {
    const words = this.search.value.trim().toLowerCase();
    const found = this.known.filter(({ name }) => name.toLowerCase().includes(words) && !this.#has(name));
    const rows = found.slice(0, MOST).map(({ name, kind }) => {
      const row = button("", "attach-row", () => this.add(name));
      row.append(el("span", "attach-name", name), el("span", "dim", kind));
      return row;
    });
    put(this.list, ...(rows.length ? rows : [el("div", "dim attach-none", "There is nothing of that name.")]));
  }

  /** @param {string} name */
  #has(name) {
    return this.items.some((item) => item.name === name && item.data === null);
  }

  /** @param {string} name */
  add(name) {
    this.items = [...this.items, { name, data: null, bytes: 0 }];
    this.#paintChips();
    this.close();
  }

  /**
   * Read files of the reader's own disk, as far as they fit beside those before them.
   *
   * @param {File[]} files
   */
  addFiles(files) {
    const reading = (this.reading ?? Promise.resolve()).then(async () => {
      await this.#read(files);
      if (this.reading === reading) this.reading = null;
    });
    this.reading = reading;
  }

  /** @param {File[]} files */
  async #read(files) {
    const problems = [];
    for (const file of files) {
      const held = this.items.reduce((sum, item) => sum + item.bytes, 0);
      const data = held + file.size > this.most ? null : await contentOf(file);
      if (data !== null) this.items = [...this.items, { name: file.name, data, bytes: file.size }];
      else if (file.size > this.most)
        problems.push(`${file.name} has ${size(file.size)}, a message takes ${size(this.most)}.`);
      else if (held + file.size > this.most)
        problems.push(`${file.name} is too much with the others: a message takes ${size(this.most)}.`);
      else problems.push(`${file.name} cannot be read; a folder cannot be attached.`);
    }
    this.#paintChips(problems.join(" "));
    this.done();
  }

  /** Forget what is attached, when its message was sent. */
  clear() {
    this.items = [];
    this.#paintChips();
  }

  #paintChips(problem = "") {
    this.note.textContent = problem;
    const chips = this.items.map((item) => {
      const { name, data, bytes } = item;
      const chip = button("", "attached-chip", () => {
        this.items = this.items.filter((each) => each !== item);
        this.#paintChips();
        this.done();
      });
      const much = data === null ? null : el("span", "dim", size(bytes));
      chip.append(el("span", "attached-name", name), much ?? "", el("span", "", "×"));
      setLabel(chip, `Do not attach ${name}`);
      return chip;
    });
    put(this.chips, ...chips);
    this.chips.hidden = !chips.length;
  }

  /**
   * Take files that are dropped on a node, or pasted into it.
   *
   * @param {HTMLElement} node
   */
  listen(node) {
    const drags = (/** @type {DragEvent} */ event) => this.takes && event.dataTransfer?.types.includes("Files");
    node.addEventListener("dragover", (event) => {
      if (!drags(event)) return;
      event.preventDefault(); // a drop is allowed
      event.stopPropagation();
      node.toggleAttribute("data-drop", true);
    });
    node.addEventListener("dragleave", (event) => {
      if (!(event.relatedTarget instanceof Node && node.contains(event.relatedTarget)))
        node.removeAttribute("data-drop");
    });
    node.addEventListener("drop", (event) => {
      node.removeAttribute("data-drop");
      if (!drags(event)) return;
      event.preventDefault(); // else the browser opens the file in place of the page
      event.stopPropagation();
      this.addFiles([...(event.dataTransfer?.files ?? [])]);
    });
    node.addEventListener("paste", (event) => {
      const { clipboardData: pasted } = event;
      // Office programs put a picture beside the text that is meant.
      if (!this.takes || !pasted?.files.length || pasted.types.includes("text/plain")) return;
      event.preventDefault();
      event.stopPropagation();
      this.addFiles([...pasted.files]);
    });
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

/**
 * The content of a file as base64. Null: it cannot be read.
 *
 * @param {File} file
 * @returns {Promise<string | null>}
 */
function contentOf(file) {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => done(null);
    reader.readAsDataURL(file);
  });
}

function clip() {
  const shape = shapeOf("svg", { class: "adknb-clip-icon", viewBox: "0 0 16 16", "aria-hidden": "true" });
  const path = "M13.5 7.3 8 12.8a3.2 3.2 0 0 1-4.6-4.6l5.8-5.7a2.1 2.1 0 0 1 3 3L6.6 11a1 1 0 0 1-1.5-1.4l5-5";
  shape.append(shapeOf("path", { d: path }));
  return shape;
}
