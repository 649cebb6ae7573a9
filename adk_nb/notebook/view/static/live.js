// The live view of a run: ops in, rows on the page, answers out. Only row.html is markup; all else goes in as text.

const MAX_ROWS = 1000;
const STATUS = {
  idle: ["○", "idle"],
  running: ["●", "running"],
  pending: ["⚠", "waiting for you"],
  done: ["✓", "done"],
  error: ["✗", "error"],
  cancelled: ["■", "stopped"],
};
const ANSWERED = {
  approved: ["✓", "approved"],
  edited: ["✎", "approved with changes"],
  rejected: ["✗", "rejected"],
  given: ["✓", "answered"],
  refused: ["✗", "refused"],
  superseded: ["–", "no longer asked"],
  stale: ["–", "stale"],
};
// How those that work stand, in a line and in a drawing.
const STANDS = {
  now: ["●", "works"],
  waits: ["⚠", "waits"],
  was: ["✓", "done"],
  failed: ["✗", "failed"],
  stopped: ["■", "stopped"],
};
const GONE = "What waits in a session that is kept in a file is asked again by %confirm; else run the cell again.";
const MARKS = { "+": "added", "~": "changed", "-": "removed" };

// Elements and attributes that the renderer of answers makes; anything else loses its tag, keeping its words.
const TAGS = new Set(
  ("A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP " +
    "TABLE TBODY TD TH THEAD TR UL").split(" "),
);
const DROPPED = new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" "));
const LINK = /^(https?:|mailto:|#)/i;

// Each view has a module of its own: a count alone would give the elements of two views the same ids.
const mine = `adknb-${Math.random().toString(36).slice(2)}`;
let ids = 0;

function el(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name.split(" ").map((part) => `adknb-${part}`).join(" ");
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function button(label, name, onClick) {
  const node = el("button", `button ${name}`, label);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

function put(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function safeMarkup(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const node of [...template.content.querySelectorAll("*")]) {
    const tag = node.tagName.toUpperCase();
    if (DROPPED.has(tag)) {
      node.remove();
      continue;
    }
    const href = tag === "A" ? node.getAttribute("href") : null;
    for (const { name } of [...node.attributes]) {
      if (name !== "start" && name !== "title" && name !== "align") node.removeAttribute(name);
    }
    if (href && LINK.test(href.trim())) {
      node.setAttribute("href", href.trim());
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    }
    if (!TAGS.has(tag)) node.replaceWith(...node.childNodes);
  }
  return template.content;
}

// A page that somebody else wrote, as Python made it ready: it runs nothing, loads nothing, and is of no origin.
function isolated(page) {
  const frame = el("iframe", "page");
  frame.sandbox = "allow-popups allow-popups-to-escape-sandbox";
  frame.referrerPolicy = "no-referrer";
  frame.title = "Search suggestions";
  frame.srcdoc = page;
  return frame;
}

const SHAPES = new Set(["rect", "path", "text"]);
const PLACED = new Set(
  ("x y width height rx d fill fill-opacity stroke stroke-opacity stroke-dasharray text-anchor font-size " +
    "font-weight").split(" "),
);

function svg({ width, height, shapes }) {
  const node = (tag, at) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(at)) made.setAttribute(name, value);
    return made;
  };
  const root = node("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  root.style.minWidth = `${Math.round(width * 0.65)}px`; // then it is scrolled
  for (const { tag, at, text, key } of shapes) {
    if (!SHAPES.has(tag)) continue;
    const shape = node(tag, Object.fromEntries(Object.entries(at).filter(([name]) => PLACED.has(name))));
    shape.dataset.key = key;
    shape.textContent = text;
    root.append(shape);
  }
  return root;
}

function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function shown(value) {
  return value === null || value === undefined ? "nothing" : JSON.stringify(value);
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// ---- what is known: the twin of ViewState in Python --------------------------------------------------------------

class Store {
  constructor(model) {
    this.model = model;
    this.views = new Set();
    this.sent = new Map(); // card id -> card.again at the click: closed here until Python says what became of it
    this.ahead = new Map(); // batches that came before the one they follow
    this.load(model.get("snapshot"));
    model.on("change:snapshot", () => this.adopt(model.get("snapshot")));
    model.on("msg:custom", (message) => this.receive(message));
    model.on("comm_live_update", () => this.say({ kind: "resync" })); // the kernel has gone, or come
  }

  load(snapshot) {
    const { rows, cards, lanes, ...rest } = snapshot;
    Object.assign(this, rest);
    this.rows = new Map(rows.map((row) => [row.id, { ...row }]));
    this.lanes = new Map(lanes.map((lane) => [lane.id, lane]));
    this.last = new Map(); // lane -> the row of its last words
    for (const row of rows) this.spoke(row);
    this.cards = new Map(cards.map((card) => [card.id, card]));
  }

  spoke(row) {
    if (!row?.lane) return;
    for (const id of this.lanes.keys()) if (row.lane === id || row.lane.startsWith(`${id}.`)) this.last.set(id, row.id);
  }

  adopt(snapshot) {
    if (snapshot.seq <= this.seq) return;
    this.load(snapshot);
    this.catchUp();
    for (const view of this.views) view.reset();
  }

  receive(message) {
    if (message.kind !== "ops" || message.seq <= this.seq) return;
    this.ahead.set(message.seq, message.ops);
    this.catchUp();
    if (this.ahead.size) this.say({ kind: "resync" });
  }

  catchUp() {
    for (const seq of this.ahead.keys()) if (seq <= this.seq) this.ahead.delete(seq);
    while (this.ahead.has(this.seq + 1)) {
      this.seq += 1;
      for (const op of this.ahead.get(this.seq)) this.apply(op);
      this.ahead.delete(this.seq);
    }
  }

  apply(op) {
    const row = this.rows.get(op.id ?? op.event);
    if (op.op === "append") {
      this.rows.set(op.row.id, { ...op.row });
      while (this.rows.size > MAX_ROWS) {
        this.rows.delete(this.rows.keys().next().value);
        this.earlier += 1;
      }
    } else if (op.op === "text" && row) {
      row.text += op.s;
      row.streaming = true;
    } else if (op.op === "patch" && row) {
      const { op: _, ...fields } = op;
      Object.assign(row, { streaming: false }, fields);
    } else if (op.op === "state") {
      this.state = op.state;
      if (row) row.changes = op.changes;
    } else if (op.op === "card") {
      this.cards.set(op.card.id, op.card);
    } else if (op.op === "status") {
      this.status = { status: op.status, text: op.text ?? "" };
      if (op.status !== "running") for (const each of this.rows.values()) each.streaming = false;
    } else if (op.op === "usage") {
      this.usage = { text: op.text };
    } else if (op.op === "notice") {
      this.notice = op.text;
    } else if (op.op === "drawing") {
      this.drawing = op.drawing;
    } else if (op.op === "mark") {
      this.marks = { ...this.marks, ...op.marks };
    } else if (op.op === "lane") {
      this.lanes.set(op.lane.id, op.lane);
    }
    if (op.op === "append" || op.op === "text" || op.op === "patch") this.spoke(this.rows.get(op.id ?? op.row?.id));
    for (const view of this.views) view.touch(op);
  }

  isOpen(card) {
    return card.state === "asked" && this.sent.get(card.id) !== card.again;
  }

  // Whether Python can hear it: after the kernel is gone, a model has no comm to send on.
  say(message) {
    try {
      this.model.send(message);
      return true;
    } catch {
      this.leave();
      return false;
    }
  }

  leave() {
    this.notice = `The kernel that ran this is gone. ${GONE}`;
    if (["running", "pending"].includes(this.status.status)) this.status = { status: "cancelled", text: "stale" };
    for (const card of this.cards.values()) {
      if (card.state === "asked") Object.assign(card, { state: "stale", note: "its kernel is gone" });
    }
    for (const view of this.views) view.reset();
  }

  answer(card, decision, more) {
    if (!this.isOpen(card)) return;
    if (this.say({ kind: "answer", id: card.id, decision, ...more })) this.sent.set(card.id, card.again);
    for (const view of this.views) view.touch({ op: "card", card });
  }
}

// ---- the edit form: one control per parameter of the JSON schema ----------------------------------------------------

function typeOf(schema, value) {
  if (Array.isArray(schema.enum)) return "enum";
  const named = typeof schema.type === "string" ? schema.type.toLowerCase() : "";
  if (["string", "integer", "number", "boolean"].includes(named)) return named;
  if (named || schema.anyOf || schema.$ref) return "json";
  const guess = typeof value;
  return ["string", "number", "boolean"].includes(guess) ? guess : "json";
}

function numberFrom(text, type, schema) {
  const pattern = type === "integer" ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  if (!pattern.test(text)) return { error: type === "integer" ? "a whole number is needed" : "a number is needed" };
  const value = Number(text);
  if (type === "integer" && !Number.isSafeInteger(value)) return { error: "too large to be sent exactly" };
  if (schema.minimum !== undefined && value < schema.minimum) return { error: `at least ${schema.minimum}` };
  if (schema.maximum !== undefined && value > schema.maximum) return { error: `at most ${schema.maximum}` };
  return { value };
}

function jsonFrom(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: `not JSON: ${error.message}` };
  }
}

function control(type, schema, value, given) {
  if (type === "enum") {
    const node = el("select", "input", ...schema.enum.map((each) => el("option", "", String(each))));
    node.selectedIndex = schema.enum.findIndex((each) => same(each, value));
    return [node, () => (node.selectedIndex < 0 ? { skip: true } : { value: schema.enum[node.selectedIndex] })];
  }
  if (type === "boolean") {
    const node = el("input", "check");
    node.type = "checkbox";
    node.checked = value === true;
    return [node, () => (!given && !node.checked ? { skip: true } : { value: node.checked })];
  }
  if (type === "json") {
    const node = el("textarea", "input");
    node.value = given ? JSON.stringify(value, null, 2) : "";
    node.rows = Math.min(8, node.value.split("\n").length + 1);
    return [node, () => (!given && !node.value.trim() ? { skip: true } : jsonFrom(node.value))];
  }
  const long = type === "string" && typeof value === "string" && (value.includes("\n") || value.length > 60);
  const node = el(long ? "textarea" : "input", "input");
  if (type !== "string") node.inputMode = type === "integer" ? "numeric" : "decimal";
  node.value = value === null || value === undefined ? "" : String(value);
  if (type === "string") return [node, () => (!given && !node.value ? { skip: true } : { value: node.value })];
  return [node, () => (!given && !node.value.trim() ? { skip: true } : numberFrom(node.value.trim(), type, schema))];
}

function field(name, schema, args) {
  const given = Object.hasOwn(args, name);
  const type = typeOf(schema, args[name]);
  const [node, read] = control(type, schema, args[name], given);
  const before = node.type === "checkbox" ? node.checked : node.value; // what was not touched is not sent
  node.id = `${mine}-${++ids}`;
  const label = el("label", "field-name", name, el("span", "dim", ` ${{ json: "JSON", enum: "one of" }[type] ?? type}`));
  label.htmlFor = node.id;
  const problem = el("div", "problem");
  problem.id = `${node.id}-problem`;
  problem.setAttribute("role", "alert");
  node.setAttribute("aria-describedby", problem.id);
  const box = el("div", "field", label, node, schema.description ? el("div", "dim", schema.description) : null, problem);
  const check = () => {
    const touched = (node.type === "checkbox" ? node.checked : node.value) !== before;
    const result = touched ? read() : { skip: true };
    problem.textContent = result.error ? `${name}: ${result.error}` : "";
    node.setAttribute("aria-invalid", String(Boolean(result.error)));
    return result;
  };
  return { name, box, node, check };
}

function editForm(card, approve, leave) {
  const known = card.schema?.properties ?? {};
  const names = [...new Set([...Object.keys(known), ...Object.keys(card.args)])];
  const fields = names.map((name) => field(name, known[name] ?? {}, card.args));
  const difference = el("div", "difference");
  difference.setAttribute("aria-live", "polite");
  const read = () => {
    const edited = {};
    let wrong = null;
    for (const each of fields) {
      const result = each.check();
      if (result.error) wrong ??= each.node;
      else if (!result.skip && !same(result.value, card.args[each.name])) edited[each.name] = result.value;
    }
    const lines = Object.entries(edited).map(([name, value]) =>
      el("div", "", el("b", "", name), ` ${shown(card.args[name])} → ${shown(value)}`),
    );
    put(difference, ...lines);
    send.textContent = lines.length ? "Approve with these changes" : "Approve unchanged";
    send.disabled = Boolean(wrong);
    return { edited, wrong };
  };
  const send = button("Approve unchanged", "go", () => {
    const { edited, wrong } = read();
    if (wrong) wrong.focus();
    else approve(Object.keys(edited).length ? edited : null);
  });
  const form = el("div", "form", ...fields.map((each) => each.box), difference);
  form.append(el("div", "buttons", send, button("Back", "back", leave)));
  form.addEventListener("input", read);
  return { form, first: fields[0]?.node };
}

// ---- what lets a tool in -------------------------------------------------------------------------------------------

function letInField({ label, hint, secret }) {
  const input = el("input", "input");
  input.id = `${mine}-${++ids}`;
  input.type = secret ? "password" : "text";
  input.autocomplete = secret ? "new-password" : "off"; // a browser does not fill in what it keeps of other places
  input.spellcheck = false;
  const name = el("label", "field-name", label, hint ? el("span", "dim", ` ${hint}`) : null);
  name.htmlFor = input.id;
  const problem = el("div", "problem");
  problem.id = `${input.id}-problem`;
  problem.setAttribute("role", "alert");
  input.setAttribute("aria-describedby", problem.id);
  const check = () => {
    const missing = !input.value.trim();
    problem.textContent = missing ? `${label}: nothing was typed` : "";
    input.setAttribute("aria-invalid", String(missing));
    return !missing;
  };
  return { input, check, box: el("div", "field", name, input, problem) };
}

function letInLink(uri) {
  if (!/^https?:/i.test(uri)) return null;
  const link = el("a", "link", `Open ${new URL(uri).host}`);
  link.href = uri;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return el("div", "step", link, el("span", "dim", " and let it in there, then paste where that leads:"));
}

// ---- what is shown -----------------------------------------------------------------------------------------------

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
