import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_ROWS, RunState } from "../../adk_nb/notebook/view/static/src/run_state.js";
import { append, snapshot } from "./fixtures.js";

/** @import { Op, StateEntry } from "../../adk_nb/notebook/view/static/src/types" */

/** @param {Op[]} ops */
function after(...ops) {
  const run = new RunState();
  run.load(snapshot());
  for (const op of ops) run.apply(op);
  return run;
}

/** @param {RunState} run */
const onlyRow = (run) => [...run.rows.values()][0];

test("streamed text is put together, and a patch ends the stream", () => {
  const stream = [append("r", { html: "" }), { op: "text", id: "r", s: "a", html: "<p>a</p>", tail: "b" }];
  const run = after(...stream);
  assert.deepEqual([onlyRow(run).text, onlyRow(run).html, onlyRow(run).streaming], ["a", "<p>a</p>", true]);

  run.apply({ op: "patch", id: "r", text: "whole" });

  assert.deepEqual([onlyRow(run).text, onlyRow(run).tail, onlyRow(run).streaming], ["whole", "", false]);
  assert.equal(onlyRow(run).html, "<p>a</p>b");
});

test("the head names the model that was said last", () => {
  const run = after({ op: "model", name: "first" }, { op: "model", name: "second" });
  assert.equal(run.modelName, "second");

  run.load({ ...snapshot(), model: "third" });

  assert.equal(run.modelName, "third");
});

test("an op on a row that is not there changes nothing", () => {
  const run = after({ op: "text", id: "x", s: "a" }, { op: "patch", id: "x", text: "b" }, { op: "mystery" });

  assert.equal(run.rows.size, 0);
});

test("of very many rows the oldest are only counted", () => {
  const run = after(...Array.from({ length: MAX_ROWS + 3 }, (_, number) => append(`${number}`)));

  assert.deepEqual([run.rows.size, run.earlier, run.rows.has("2"), run.rows.has("3")], [MAX_ROWS, 3, false, true]);
});

test("a status that is not running ends every stream", () => {
  const run = after(append("r"), { op: "text", id: "r", s: "a" }, { op: "status", status: "cancelled" });

  assert.deepEqual([onlyRow(run).streaming, run.status], [false, { status: "cancelled", text: "", seconds: 0 }]);
});

test("changed keys replace those of the same name, and removed keys come last", () => {
  /** @type {StateEntry[]} */
  const state = [
    { key: "a", kind: "", value: "1" },
    { key: "b", kind: "", value: "2" },
  ];
  const gone = { key: "a", kind: "-", old: "1", value: null };
  const entries = [gone, { key: "c", kind: "+", value: "3" }];
  const changes = [{ key: "a", kind: "-", old: "1", new: null }];

  const run = after(
    append("r"),
    { op: "state", event: "r", state, changes: [] },
    { op: "state", event: "r", entries, changes },
  );

  assert.deepEqual(
    run.state.map(({ key }) => key),
    ["b", "c", "a"],
  );
  assert.deepEqual(onlyRow(run).changes, changes);
});

test("a key that was added and removed again is forgotten", () => {
  const added = { key: "a", kind: "+", value: "1" };
  const run = after({ op: "state", entries: [added], changes: [] });

  run.apply({ op: "state", entries: [{ key: "a", kind: "", value: null }], changes: [] });

  assert.deepEqual(run.state, []);
});

test("a lane knows the row of its last words, of members within it, too", () => {
  const lanes = ["1", "2"].map((id) => ({ op: "lane", lane: { id, name: id, label: id, state: "now" } }));

  const run = after(...lanes, append("r", { lane: "1" }), append("s", { lane: "1.1" }), append("t", { lane: "2" }));

  assert.deepEqual(
    [...run.last],
    [
      ["1", "s"],
      ["2", "t"],
    ],
  );
});

test("a snapshot replaces what was known, and is not changed by later ops", () => {
  const row = { ...append("r").row, text: "a" };
  const given = snapshot({ seq: 7, rows: [row], notice: "hello" });
  const run = after(append("old"));

  run.load(given);
  run.apply({ op: "text", id: "r", s: "b" });

  assert.deepEqual([run.seq, run.notice, [...run.rows.keys()], onlyRow(run).text], [7, "hello", ["r"], "ab"]);
  assert.equal(given.rows[0].text, "a");
});
