import assert from "node:assert/strict";
import { test } from "node:test";

import { Turns } from "../../adk_nb/notebook/view/static/src/chat_turns.js";
import { Store } from "../../adk_nb/notebook/view/static/src/store.js";
import { append, FakeModel } from "./fixtures.js";

/** @param {FakeModel} model */
function watched(model) {
  const store = new Store(model);
  const turns = new Turns(store);
  store.views.add({ touch: (op) => turns.touch(op), reset: () => turns.reset() });
  turns.reset();
  return { store, turns };
}

test("a turn whose card retries it offers that once, and again when the card is gone", () => {
  const model = new FakeModel({ box: { height: 300, forks: true } });
  const { store, turns } = watched(model);
  model.hear(1, append("q1", { kind: "user" }), append("a1"), append("q2", { kind: "user" }));
  const card = { id: "c", kind: "error", state: "asked", again: 0, ways: ["retry", "drop"] };
  const offered = () => turns.take().map(({ retries, repeats }) => [retries, repeats]);

  assert.deepEqual(offered().at(-1), [true, true]);
  model.hear(2, { op: "card", card });
  assert.deepEqual(offered(), [
    [true, true],
    [false, true],
  ]);

  store.decide(/** @type {any} */ (card), "drop", {});

  assert.deepEqual(offered().at(-1), [true, true]);
});
