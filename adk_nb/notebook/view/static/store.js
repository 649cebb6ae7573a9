// What is known of a run: the twin of ViewState in Python, fed by ops; answers go out here.

class Store {
  constructor(model) {
    this.model = model;
    this.manager = model.widget_manager;
    this.views = new Set();
    this.sent = new Map(); // card id -> card.again at the click: closed here until Python says what became of it
    this.panels = new Map(); // what was asked of Python for a panel, as "waterfall" or "event/id" -> the answer
    this.needed = new Map(); // the same key -> what to do with the answer
    this.ahead = new Map(); // batches that came before the one they follow
    this.late = model.get("snapshot").seq > 0; // the run had begun before the page saw it
    this.load(model.get("snapshot"));
    model.on("change:snapshot", () => this.adopt(model.get("snapshot")));
    model.on("msg:custom", (message) => this.receive(message));
    model.on("comm_live_update", () => this.say({ kind: "resync" })); // the kernel has gone, or come
  }

  load(snapshot) {
    const { rows, cards, lanes, artifacts = [], ...rest } = snapshot;
    Object.assign(this, rest);
    this.gone = false;
    this.rows = new Map(rows.map((row) => [row.id, { ...row }]));
    this.lanes = new Map(lanes.map((lane) => [lane.id, lane]));
    this.last = new Map(); // lane -> the row of its last words
    for (const row of rows) this.spoke(row);
    this.cards = new Map(cards.map((card) => [card.id, card]));
    this.artifacts = new Map(artifacts.map((one) => [one.id, one])); // what the run has saved, oldest first
  }

  // The state with these entries in place of those of the same key; removed keys come last.
  changed(entries) {
    const state = new Map(this.state.map((entry) => [entry.key, entry]));
    for (const entry of entries) state.set(entry.key, entry);
    const left = [...state.values()].filter((entry) => entry.kind || entry.value !== null);
    return [...left.filter((entry) => entry.kind !== "-"), ...left.filter((entry) => entry.kind === "-")];
  }

  // Ask Python for what does not come by itself, and call `then` with it.
  need(what, id, then) {
    const key = `${what}/${id}`;
    if (this.panels.has(key)) then(this.panels.get(key));
    else if (this.say({ kind: "need", what, id })) this.needed.set(key, then);
  }

  told(key, data) {
    this.panels.set(key, data);
    this.needed.get(key)?.(data);
    this.needed.delete(key);
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
      if (op.tail !== undefined) Object.assign(row, { html: row.html + op.html, tail: op.tail });
    } else if (op.op === "patch" && row) {
      const { op: _, ...fields } = op;
      Object.assign(row, { streaming: false, tail: "" }, fields);
    } else if (op.op === "state") {
      this.state = op.state ?? this.changed(op.entries);
      if (row) row.changes = [...(row.changes ?? []), ...op.changes];
    } else if (op.op === "card") {
      this.cards.set(op.card.id, op.card);
    } else if (op.op === "status") {
      this.status = { status: op.status, text: op.text ?? "" };
      if (op.status !== "running") for (const each of this.rows.values()) each.streaming = false;
    } else if (op.op === "usage") {
      this.usage = { text: op.text, title: op.title ?? "" };
    } else if (op.op === "notice") {
      this.notice = op.text;
    } else if (op.op === "drawing") {
      this.drawing = op.drawing;
    } else if (op.op === "mark") {
      this.marks = { ...this.marks, ...op.marks };
    } else if (op.op === "lane") {
      this.lanes.set(op.lane.id, op.lane);
    } else if (op.op === "artifact") {
      this.artifacts.set(op.artifact.id, op.artifact);
    }
    else if (op.op === "offers") this.offers = op.what;
    else if (op.op === "answer") this.answer = op.answer;
    else if (op.op === "panel") this.told(op.id ? `${op.name}/${op.id}` : op.name, op.data);
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
    this.gone = true;
    this.notice = `The kernel that ran this is gone. ${GONE}`;
    if (["running", "pending"].includes(this.status.status)) this.status = { status: "cancelled", text: "stale" };
    for (const card of this.cards.values()) {
      if (card.state === "asked") Object.assign(card, { state: "stale", note: "its kernel is gone" });
    }
    for (const view of this.views) view.reset();
  }

  decide(card, decision, more) {
    if (!this.isOpen(card)) return;
    if (this.say({ kind: "answer", id: card.id, decision, ...more })) this.sent.set(card.id, card.again);
    for (const view of this.views) view.touch({ op: "card", card });
  }
}
