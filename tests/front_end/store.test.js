import assert from "node:assert/strict";
import { test } from "node:test";

import { Store } from "../../adk_nb/notebook/view/static/src/store.js";
import { append, FakeModel } from "./fixtures.js";

/** @param {Record<string, unknown>} fields */
const card = (fields = {}) => /** @type {any} */ ({ id: "c", state: "asked", again: 0, ...fields });

/** @param {Store} store */
function watched(store) {
  const heard = /** @type {string[]} */ ([]);
  store.views.add({ touch: (/** @type {any} */ op) => heard.push(op.op), reset: () => heard.push("reset") });
  return heard;
}

test("batches are applied in their order, however they come", () => {
  const model = new FakeModel();
  const store = new Store(model);

  model.hear(2, { op: "text", id: "r", s: "b" });
  assert.deepEqual([store.rows.size, model.sent], [0, [{ kind: "resync" }]]);
  model.hear(1, append("r", { text: "a" }));

  assert.deepEqual([store.rows.get("r")?.text, store.seq, store.ahead.size], ["ab", 2, 0]);
});

test("a batch that was applied is not applied again", () => {
  const model = new FakeModel();
  const store = new Store(model);
  model.hear(1, append("r", { text: "a" }));
  model.hear(2, { op: "text", id: "r", s: "b" });

  model.hear(2, { op: "text", id: "r", s: "b" });

  assert.equal(store.rows.get("r")?.text, "ab");
});

test("a snapshot brings a page up to date, and what came ahead of it follows", () => {
  const model = new FakeModel();
  const store = new Store(model);
  const heard = watched(store);
  model.hear(3, { op: "notice", text: "third" });

  model.hearSnapshot({ seq: 2, notice: "second" });

  assert.deepEqual([store.seq, store.notice], [3, "third"]);
  assert.deepEqual(heard, ["notice", "reset"]);
});

test("an older snapshot is not taken", () => {
  const model = new FakeModel();
  const store = new Store(model);
  model.hear(1, { op: "notice", text: "first" });

  model.hearSnapshot({ seq: 1, notice: "the same" });

  assert.equal(store.notice, "first");
});

test("a card is answered once until it is asked again", () => {
  const model = new FakeModel();
  const store = new Store(model);
  model.hear(1, { op: "card", card: card() });

  store.decide(card(), "approve", { args: null });
  store.decide(card(), "approve", { args: null });
  assert.equal(model.sent.length, 1);
  assert.equal(store.isOpen(card()), false);

  assert.equal(store.isOpen(card({ again: 1 })), true);
});

test("what a panel needs is asked once, and told to who asked", () => {
  const model = new FakeModel();
  const store = new Store(model);
  const told = /** @type {any[]} */ ([]);

  store.need("call", "c", (data) => told.push(data));
  model.hear(1, { op: "panel", name: "call", id: "c", data: { args: {} } });
  store.need("call", "c", (data) => told.push(data));

  assert.deepEqual(told, [{ args: {} }, { args: {} }]);
  assert.deepEqual(model.sent, [{ kind: "need", what: "call", id: "c" }]);
});

test("without its kernel a run is stopped and no card can be answered", () => {
  const model = new FakeModel({ status: { status: "running", text: "" }, cards: [card()] });
  const store = new Store(model);
  const heard = watched(store);
  model.isGone = true;

  assert.equal(store.send({ kind: "stop" }), false);

  assert.deepEqual([store.gone, store.status.status, store.cards.get("c")?.state], [true, "cancelled", "stale"]);
  assert.match(store.notice, /%confirm/);
  assert.deepEqual(heard, ["reset"]);
});
