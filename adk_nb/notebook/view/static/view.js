// What is shown of a run, painted once a frame.

class View {
  constructor(store, host) {
    this.store = store;
    this.nodes = new Map(); // row id -> {node, text, length}
    this.cards = new Map(); // card id -> {node, drawn}
    this.open = new Set();
    this.dirty = new Set();
    this.selected = null;
    this.frame = 0;
    this.build(host);
    this.reset();
  }

  build(host) {
    this.title = el("span", "title");
    this.status = el("span", "status");
    this.stop = button("Stop", "stop", () => {
      this.stopping = true;
      this.store.say({ kind: "stop" });
      this.schedule();
    });
    this.notice = el("div", "notice");
    this.notice.setAttribute("role", "note");
    this.lanes = el("ul", "lanes");
    this.lanes.setAttribute("aria-label", "Working at once");
    this.lanes.tabIndex = 0; // it may have to be scrolled
    this.laneNodes = new Map(); // lane id -> {node, drawn}
    this.picture = el("div", "picture");
    this.picture.setAttribute("role", "img");
    this.picture.tabIndex = 0; // it may have to be scrolled
    this.earlier = el("div", "earlier");
    this.log = el("div", "log", this.earlier);
    this.log.setAttribute("role", "log");
    this.log.setAttribute("aria-live", "polite");
    this.log.setAttribute("aria-label", "Events");
    this.log.addEventListener("keydown", (event) => this.onKey(event));
    this.log.addEventListener("click", (event) => this.onClick(event));
    this.state = el("div", "state");
    this.state.setAttribute("role", "region");
    this.state.setAttribute("aria-label", "State");
    this.state.tabIndex = 0;
    this.asks = el("div", "cards");
    this.foot = el("div", "foot");
    this.said = el("div", "hidden");
    this.said.setAttribute("role", "status");
    const head = el("div", "head", this.title, this.status, this.stop);
    head.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the button's, not the notebook's
    this.panes = el("div", "panes", this.picture, this.log, this.state);
    this.root = el("div", "view", head, this.notice, this.lanes, this.panes, this.asks, this.foot);
    this.root.append(this.said);
    this.box = el("div", "root", this.root);
    host.append(this.box);
  }

  reset() {
    for (const id of this.store.rows.keys()) this.mark(id);
    this.stale = true;
    this.schedule();
  }

  touch(op) {
    if (op.op === "append") this.dirty.add(op.row.id);
    else if (op.op === "text") this.dirty.add(op.id);
    else if (op.op === "patch" || op.op === "state") this.mark(op.id ?? op.event);
    if (op.op === "status") {
      this.stopping = false;
      for (const id of this.nodes.keys()) if (this.nodes.get(id).text) this.mark(id);
    }
    if (op.op !== "append" && op.op !== "text") this.stale = true;
    this.schedule();
  }

  mark(id) {
    const drawn = this.nodes.get(id);
    if (drawn) drawn.text = null; // redraw the whole row, not its tail alone
    this.dirty.add(id);
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const { log, store } = this;
    const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
    for (const id of this.dirty) this.paintRow(store.rows.get(id), id);
    this.dirty.clear();
    this.forget();
    this.earlier.textContent = store.earlier ? `${store.earlier} earlier rows` : "";
    this.paintLanes();
    if (this.stale) this.paintFrame();
    this.stale = false;
    if (!this.nodes.has(this.selected)) this.select(this.nodes.keys().next().value ?? null, false);
    if (follows) log.scrollTop = log.scrollHeight;
  }

  paintFrame() {
    const { store } = this;
    const [icon, word] = STATUS[store.status.status] ?? ["", store.status.status];
    const running = store.status.status === "running";
    this.title.textContent = store.title;
    this.root.dataset.status = store.status.status;
    put(this.status, el("span", "icon", icon), ` ${store.status.text || word}`);
    this.stop.hidden = !running;
    this.stop.disabled = Boolean(this.stopping);
    this.stop.textContent = this.stopping ? "Stopping…" : "Stop";
    this.notice.textContent = store.notice;
    this.notice.hidden = !store.notice;
    this.foot.textContent = store.usage.text;
    this.foot.hidden = !store.usage.text;
    this.panes.hidden = !(store.rows.size || store.state.length || store.drawing);
    this.paintPicture();
    this.paintState();
    this.paintCards();
  }

  // Keep what works now in sight, without moving the page.
  followPath() {
    const box = this.picture.getBoundingClientRect();
    const now = this.picture.querySelector("rect:is([data-mark=now], [data-mark=waits]):not([fill=none])");
    if (!now) return;
    const at = now.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) this.picture.scrollTop += (at.top + at.bottom - box.top - box.bottom) / 2;
    if (at.left < box.left || at.right > box.right) this.picture.scrollLeft += (at.left + at.right - box.left - box.right) / 2;
  }

  // -- the drawing: its shapes once, then only their marks

  paintPicture() {
    const { drawing, marks } = this.store;
    this.picture.hidden = !drawing;
    if (!drawing) return;
    if (this.drawn !== drawing) {
      this.drawn = drawing;
      put(this.picture, svg(drawing));
    }
    for (const node of this.picture.querySelectorAll("[data-key]")) {
      const { key } = node.dataset;
      const mark = marks[key.replace(/^s:/, "n:")] ?? "";
      if ((node.dataset.mark ?? "") === mark) continue;
      node.dataset.mark = mark;
      if (key.startsWith("s:")) node.textContent = STANDS[mark]?.[0] ?? "";
      else if (key.startsWith("c:")) node.textContent = mark;
    }
    this.picture.setAttribute("aria-label", [drawing.title, ...this.standing()].join("; "));
    this.followPath();
  }

  // Who works, waits or failed, in words.
  standing() {
    const { drawing, marks } = this.store;
    const names = drawing.shapes.filter(({ at, key }) => at["font-weight"] && key.startsWith("n:"));
    return Object.entries(STANDS)
      .filter(([mark]) => mark !== "was")
      .map(([mark, [, word]]) => [word, names.filter(({ key }) => marks[key] === mark).map(({ text }) => text)])
      .filter(([, found]) => found.length)
      .map(([word, found]) => `${word}: ${[...new Set(found)].join(", ")}`);
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

  // -- rows

  paintRow(row, id) {
    if (!row) return;
    const drawn = this.nodes.get(id);
    if (drawn?.text && row.streaming) {
      drawn.text.appendData(row.text.slice(drawn.length));
      drawn.length = row.text.length;
      return;
    }
    const node = drawn?.node ?? el("div", "row");
    node.dataset.id = id;
    node.dataset.kind = row.kind;
    if (row.lane) node.dataset.lane = this.color(row.lane);
    node.tabIndex = id === this.selected ? 0 : -1;
    node.setAttribute("aria-busy", String(Boolean(row.streaming)));
    const what = el("div", "what");
    const text = this.fill(what, row);
    const more = row.detail || row.changes?.length ? this.disclosure(row) : el("span", "more");
    const author = el("span", "author", row.kind === "user" && row.author === "user" ? "you" : row.author);
    put(node, more, author, what, el("span", "ms", duration(row.ms)), this.detail(row));
    if (!drawn) this.log.append(node);
    this.nodes.set(id, { node, text: row.streaming ? text : null, length: row.text.length });
  }

  // -- those that work at once: a line for each, with its last words

  paintLanes() {
    const { lanes, last, rows } = this.store;
    this.lanes.hidden = lanes.size < 2;
    if (this.lanes.hidden) return;
    for (const lane of lanes.values()) {
      const words = this.words(rows.get(last.get(lane.id)));
      const drawn = `${lane.state} ${words}`;
      const known = this.laneNodes.get(lane.id);
      if (known?.drawn === drawn) continue;
      const [icon, word] = STANDS[lane.state] ?? ["", ""];
      const stands = el("span", "stands", el("span", "icon", icon), ` ${word}`);
      const node = el("li", "lane", stands, el("span", "author", lane.label), el("span", "words", words));
      node.dataset.mark = lane.state;
      node.dataset.lane = this.color(lane.id);
      if (known) known.node.replaceWith(node);
      else this.lanes.append(node);
      this.laneNodes.set(lane.id, { node, drawn });
    }
  }

  words(row) {
    if (!row) return "";
    if (row.kind === "call") return `⚙ ${row.tool}(${row.args}) ${row.result ?? row.text}`;
    return row.text.trim().split("\n").pop();
  }

  // Of those that work at once, each has a colour of its own.
  color(lane) {
    return [...this.store.lanes.keys()].indexOf(lane) % 4;
  }

  fill(what, row) {
    if (row.kind === "call") {
      this.fillCall(what, row);
      return null;
    }
    if (row.kind === "error") what.append(el("span", "label bad", "✗ Error "));
    if (row.kind === "thought") what.append(el("span", "label dim", "thought "));
    if (row.html !== null && row.html !== undefined) {
      what.append(el("div", "html", safeMarkup(row.html)), ...(row.pages ?? []).map(isolated));
      return null;
    }
    const text = document.createTextNode(row.text);
    what.append(el("span", "text", text));
    if (row.streaming) what.append(el("span", "caret", "▌"));
    return text;
  }

  fillCall(what, row) {
    what.append(el("span", "icon", "⚙"), "\u00a0", el("span", "call", row.tool, "(", el("wbr"), el("span", "args", row.args), ")"));
    if (row.text) what.append(" ", el("span", "text", row.text));
    if (row.result === null && row.ok === null) {
      if (this.store.status.status === "running") what.append(" ", el("span", "dim", "…"));
      return;
    }
    const sign = row.ok === false ? el("span", "bad", "✗ failed") : el("span", "good", "✓");
    what.append(" ", sign, " ", el("span", "result", row.result));
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
    if (!this.open.has(row.id)) return null;
    const changes = (row.changes ?? []).map((change) => this.change(change.key, change.kind, change.old, change.new));
    return el(
      "div",
      "detail",
      changes.length ? el("div", "changes", el("div", "dim", "state changed by this event"), ...changes) : null,
      row.detail ? el("pre", "json", row.detail) : null,
    );
  }

  change(key, kind, old, now) {
    const value = kind === "~" ? `${old ?? ""} → ${now ?? ""}` : (kind === "-" ? old : now) ?? "";
    const mark = el("span", "mark", kind || " ");
    const node = el("div", "entry", mark, el("span", "key", key), el("span", "value", value));
    node.dataset.mark = kind || "";
    if (MARKS[kind]) mark.append(el("span", "hidden", ` ${MARKS[kind]}`));
    return node;
  }

  toggle(id, open = !this.open.has(id)) {
    const row = this.store.rows.get(id);
    if (!row || (!row.detail && !row.changes?.length)) return;
    if (open) this.open.add(id);
    else this.open.delete(id);
    this.mark(id);
    this.schedule();
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
    this.select(node.dataset.id, Boolean(event.target.closest("button")));
    const reading = String(getSelection()) || event.target.closest(".adknb-detail");
    if (event.target.closest("button") || !reading) this.toggle(node.dataset.id);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const all = [...this.nodes.keys()];
    const at = all.indexOf(this.selected);
    const moves = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 };
    if (event.key in moves) this.select(all[Math.min(all.length - 1, Math.max(0, moves[event.key]))] ?? null);
    else if (event.key === "Enter" && event.target.closest("a")) return;
    else if (event.key === "Enter") this.toggle(this.selected);
    else if (event.key === "ArrowRight") this.toggle(this.selected, true);
    else if (event.key === "ArrowLeft") this.toggle(this.selected, false);
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  leave() {
    const cell = this.box.closest(".jp-Cell");
    document.activeElement?.blur();
    cell?.focus({ preventScroll: true });
  }

  // -- state

  paintState() {
    const { state } = this.store;
    this.state.hidden = !state.length;
    if (!state.length) return;
    const head = el("div", "pane-head", "State");
    if (state.some((entry) => entry.kind)) head.append(el("span", "dim", " + ~ - against the start"));
    put(this.state, head, ...state.map((entry) => this.change(entry.key, entry.kind, entry.old, entry.value)));
  }

  // -- cards

  paintCards() {
    for (const [id, { node }] of this.cards) {
      if (this.store.cards.has(id)) continue;
      node.remove();
      this.cards.delete(id);
    }
    for (const card of this.store.cards.values()) {
      const drawn = JSON.stringify([card, this.store.isOpen(card)]);
      const known = this.cards.get(card.id);
      if (known?.drawn === drawn) continue;
      const node = this.card(card);
      const focused = known?.node.contains(document.activeElement);
      if (known) known.node.replaceWith(node);
      else this.asks.append(node);
      if (focused) node.focus();
      this.cards.set(card.id, { node, drawn });
    }
  }

  card(card) {
    const open = this.store.isOpen(card);
    const toBeLetIn = card.kind === "credential";
    const head = el("div", "ask", el("span", "icon", open ? "⚠" : ""), ` ${card.agent} `);
    if (toBeLetIn) head.append("calls ", el("b", "", card.tool), `, which needs ${card.needs}`);
    else head.append("asks to call ", el("b", "", card.tool));
    const args = Object.entries(card.args).map(([name, value]) =>
      el("span", "arg", el("span", "dim", `${name} `), el("code", "", shown(value))),
    );
    const node = el("div", "card", head, el("div", "arguments", ...args), card.hint ? el("div", "hint", card.hint) : null);
    head.id = `${mine}-${++ids}`;
    node.dataset.state = card.state;
    node.dataset.card = card.id;
    node.tabIndex = -1;
    node.setAttribute("aria-labelledby", head.id);
    node.setAttribute("role", open ? "alertdialog" : "group");
    node.addEventListener("keydown", (event) => this.onCardKey(event));
    if (open) {
      node.append(card.note ? el("div", "problem", card.note) : "");
      if (toBeLetIn) this.offerToLetIn(node, card);
      else this.offer(node, card);
      this.said.textContent = `${head.textContent} ${card.note}`;
    } else {
      node.append(this.outcome(card));
      this.said.textContent = "";
    }
    return node;
  }

  outcome(card) {
    const [icon, word] = ANSWERED[card.state] ?? ["…", "sent; the kernel answers when it is free"];
    return el("div", "outcome", el("b", "", `${icon} ${word}`), card.note ? `: ${card.note}` : "");
  }

  offer(node, card) {
    const place = el("div", "place");
    const command = card.how ? el("span", "twin", "or type: ", el("code", "", card.how)) : "";
    const buttons = () => {
      const edit = button("Edit…", "edit", () => {
        const approve = (args) => this.approve(card, args);
        const { form, first } = editForm(card, approve, () => buttons().edit.focus());
        put(place, form);
        first?.focus();
      });
      const reject = button("Reject…", "reject", () => this.askReason(place, card, () => buttons().reject.focus()));
      const approve = button("Approve", "go", () => this.approve(card, null));
      put(place, el("div", "buttons", approve, edit, reject, command));
      return { edit, reject };
    };
    buttons();
    node.append(place);
  }

  // What is typed here goes out once, in one message, and is kept nowhere.
  offerToLetIn(node, card) {
    const fields = card.fields.map(letInField);
    const send = () => {
      const wrong = fields.filter((each) => !each.check());
      if (wrong.length) wrong[0].input.focus();
      else this.store.answer(card, "let_in", { given: fields.map((each) => each.input.value.trim()).join(":") });
    };
    const form = el("div", "form", ...fields.map((each) => each.box));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing && event.target.tagName === "INPUT") send();
    });
    const refuse = button("Refuse", "refuse", () => this.store.answer(card, "refuse", { given: null }));
    const command = el("span", "twin", "or type: ", el("code", "", card.how));
    node.append(letInLink(card.link) ?? "", form, el("div", "buttons", button("Continue", "go", send), refuse, command));
  }

  approve(card, args) {
    this.store.answer(card, "approve", { args, reason: null });
  }

  askReason(place, card, leave) {
    const reason = el("input", "input");
    reason.id = `${mine}-${++ids}`;
    const label = el("label", "field-name", "reason (optional; the model is told)");
    label.htmlFor = reason.id;
    const send = () => this.store.answer(card, "reject", { args: null, reason: reason.value.trim() || null });
    const buttons = el("div", "buttons", button("Reject", "reject", send), button("Back", "back", leave));
    put(place, el("div", "form", el("div", "field", label, reason), buttons));
    reason.focus();
  }

  onCardKey(event) {
    if (event.key === "Escape") this.leave();
    event.stopPropagation();
  }

  remove() {
    cancelAnimationFrame(this.frame);
    this.store.views.delete(this);
    this.box.remove();
  }
}

export default () => {
  let store;
  return {
    initialize({ model }) {
      store = new Store(model);
    },
    render({ model, el: host }) {
      const view = new View(store, host);
      store.views.add(view);
      store.say({ kind: "resync" });
      return () => view.remove();
    },
  };
};
