// The log: a row for each thing that happened.

import { el, put } from "./elements.js";
import { Growing, isMarkup, isolated, lookedAt, markup } from "./markup.js";
import { RowDetail } from "./row_detail.js";
import { rowLine } from "./row_text.js";
import { duration } from "./words.js";

export class Events {
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.nodes = new Map(); // row id -> {node, text, length}
    this.open = new Set();
    this.dirty = new Set();
    this.selected = null;
    this.longest = 0; // letters of an author
    this.words = ""; // only rows with these are shown
    this.details = new RowDetail(store);
    this.earlier = el("div", "earlier");
    this.node = el("div", "log", this.earlier);
    this.node.setAttribute("role", "log");
    this.node.setAttribute("aria-live", "off"); // the announcer says it, by sentences
    this.node.setAttribute("aria-label", "Events");
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    this.node.addEventListener("click", (event) => this.onClick(event));
  }

  reset() {
    for (const id of this.store.rows.keys()) this.mark(id);
  }

  touch(op) {
    if (op.failure ?? op.row?.failure) this.open.add(op.id ?? op.row.id); // what went wrong is in sight
    if (op.op === "append") this.dirty.add(op.row.id);
    else if (op.op === "text") this.dirty.add(op.id);
    else if (op.op === "patch" || op.op === "state") {
      this.mark(op.id ?? op.event);
      if (op.op === "patch" && this.open.has(op.id) && !op.failure) this.details.ask(op);
    } else if (op.op === "panel" && op.name === "event") this.reread(op.id);
    else if (op.op === "offers") this.reset();
    else if (op.op === "status") for (const [id, { text, growing }] of this.nodes) if (text || growing) this.mark(id);
  }

  // What the reader opened stays where it is.
  reread(id) {
    this.reading = true;
    this.mark(id);
  }

  mark(id) {
    const drawn = this.nodes.get(id);
    if (drawn) drawn.text = drawn.growing = null; // redraw the whole row, not its tail alone
    this.dirty.add(id);
  }

  paint() {
    const { node, store } = this;
    const follows = !this.reading && node.scrollHeight - node.scrollTop - node.clientHeight < 24;
    this.reading = false;
    for (const id of this.dirty) this.paintRow(store.rows.get(id), id);
    this.dirty.clear();
    this.forget();
    node.toggleAttribute("data-long", this.nodes.size > 50); // more than there is room for
    this.earlier.textContent = store.earlier ? `${store.earlier} earlier rows` : "";
    if (!this.nodes.has(this.selected)) this.select(this.nodes.keys().next().value ?? null, false);
    return () => follows && (node.scrollTop = node.scrollHeight);
  }

  forget() {
    if (this.nodes.size === this.store.rows.size) return;
    for (const [id, { node }] of this.nodes) {
      if (this.store.rows.has(id)) continue;
      node.remove();
      this.nodes.delete(id);
      this.open.delete(id);
    }
  }

  paintRow(row, id) {
    if (!row) return;
    const drawn = this.nodes.get(id);
    if (drawn?.growing && row.streaming) {
      drawn.growing.paint(row);
      return;
    }
    if (drawn?.text && row.streaming) {
      drawn.text.appendData(row.text.slice(drawn.length));
      drawn.length = row.text.length;
      return;
    }
    const node = drawn?.node ?? el("div", "row");
    node.dataset.id = id;
    node.dataset.kind = row.kind;
    if (row.lane) node.dataset.lane = this.view.lanes.color(row.lane);
    node.tabIndex = id === this.selected ? 0 : -1;
    node.setAttribute("aria-busy", String(Boolean(row.streaming)));
    const what = el("div", "what");
    const growing = row.streaming && isMarkup(row) ? new Growing(this.store.manager) : null;
    const text = growing ? what.append(growing.node) : this.fill(what, row);
    growing?.paint(row);
    const more = this.details.may(row) ? this.disclosure(row) : el("span", "more");
    put(node, more, this.author(row), what, this.numbers(row), this.detail(row));
    if (!drawn) this.node.append(node);
    if (this.words) node.hidden = !this.fits(row);
    this.nodes.set(id, { node, growing, text: row.streaming ? text : null, length: row.text.length });
  }

  // All have the room of the longest.
  author(row) {
    const name = row.kind === "user" && row.author === "user" ? "you" : row.author;
    const node = el("span", "author", name);
    node.title = name;
    if (name.length > this.longest) {
      this.longest = name.length;
      this.node.style.setProperty("--adknb-author-letters", name.length);
    }
    return node;
  }

  // How long it took, and how many tokens.
  numbers(row) {
    const node = el("span", "ms", duration(row.ms));
    if (row.usage) {
      node.append(el("div", "tokens", row.usage.text));
      node.title = row.usage.title;
    }
    return node;
  }

  fill(what, row) {
    if (row.kind === "call") {
      this.fillCall(what, row);
      return null;
    }
    if (row.kind === "error") what.append(el("span", "label bad", "✗ "));
    if (row.kind === "thought") what.append(el("span", "label dim", "thought "));
    if (isMarkup(row)) {
      const words = markup(row.html + (row.tail ?? ""), this.store.manager);
      what.append(words, ...(row.pages ?? []).map((page) => isolated(page)));
      what.append(lookedAt(row.shown) ?? "");
      return null;
    }
    const text = document.createTextNode(row.text);
    what.append(el("span", "text", text));
    if (row.streaming) what.append(el("span", "caret", "▌"));
    what.append(lookedAt(row.shown) ?? "");
    return text;
  }

  fillCall(what, row) {
    what.append(
      el("span", "icon", "⚙"),
      "\u00a0",
      el("span", "call", row.tool, "(", el("wbr"), el("span", "args", row.args), ")"),
    );
    if (row.text) what.append(" ", el("span", "text", row.text));
    if (row.result === null && row.ok === null) {
      if (this.store.status.status === "running") what.append(" ", el("span", "dim", "…"));
      return;
    }
    const sign = row.ok === false ? el("span", "bad", "✗ failed") : row.ok ? el("span", "good", "✓") : null;
    what.append(" ", sign ?? "→", " ", el("span", "result", row.result), lookedAt(row.shown) ?? "");
  }

  disclosure(row) {
    const open = this.open.has(row.id);
    const node = el("button", "more", open ? "▾" : "▸");
    node.type = "button";
    node.tabIndex = -1;
    node.setAttribute("aria-expanded", String(open));
    node.setAttribute("aria-label", "details");
    return node;
  }

  detail(row) {
    return this.open.has(row.id) ? this.details.node(row) : null;
  }

  toggle(id, open = !this.open.has(id)) {
    const row = this.store.rows.get(id);
    if (!row || !this.details.may(row)) return;
    if (open) this.open.add(id);
    else this.open.delete(id);
    if (open) this.details.ask(row);
    this.reread(id);
    this.view.schedule();
  }

  // Show only rows that have these words.
  narrow(words) {
    this.words = words.trim().toLowerCase();
    for (const [id, { node }] of this.nodes) node.hidden = !this.fits(this.store.rows.get(id));
    this.view.schedule();
  }

  fits(row) {
    return !this.words || rowLine(row).toLowerCase().includes(this.words);
  }

  shown() {
    return [...this.store.rows.values()].filter((row) => this.fits(row));
  }

  // Open the row of an event, and go there.
  reveal(event) {
    const id = [...this.nodes.keys()].findLast((each) => each === event || each.startsWith(`${event}/`));
    if (!id) return;
    this.select(id);
    this.toggle(id, true);
    this.nodes.get(id).node.scrollIntoView({ block: "nearest" });
  }

  select(id, focus = true) {
    const before = this.nodes.get(this.selected)?.node;
    if (before) before.tabIndex = -1;
    this.selected = id;
    const node = this.nodes.get(id)?.node;
    if (!node) return;
    node.tabIndex = 0;
    if (focus) node.focus();
  }

  onClick(event) {
    const node = event.target.closest(".adknb-row");
    if (!node || event.target.closest("a")) return;
    this.select(node.dataset.id, Boolean(event.target.closest(".adknb-more")));
    const inside = event.target.closest(".adknb-detail");
    if (event.target.closest("button") ? !inside : !inside && !String(getSelection())) this.toggle(node.dataset.id);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const all = this.shown().map((row) => row.id);
    const at = all.indexOf(this.selected);
    const moves = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 };
    if (event.key in moves) this.select(all[Math.min(all.length - 1, Math.max(0, moves[event.key]))] ?? null);
    else if (["Enter", " "].includes(event.key) && event.target.closest("a, .adknb-detail"))
      return event.stopPropagation();
    else if (event.key === "Enter") this.toggle(this.selected);
    else if (event.key === "ArrowRight") this.toggle(this.selected, true);
    else if (event.key === "ArrowLeft") this.toggle(this.selected, false);
    else if (event.key === "Escape") this.view.leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
