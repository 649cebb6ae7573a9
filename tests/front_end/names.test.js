import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Names } from "../../editors/jupyterlab/src/names.js";

mock.timers.enable({ apis: ["setTimeout"] });

/** Let timers of `ms` fire, and what waits for them go on. @param {number} [ms] */
async function pass(ms = 1000) {
  mock.timers.tick(ms);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

/** A kernel that has `known`, and a cell in view that shows `wanted`. */
class Notebook {
  /** @param {[string, string][]} wanted @param {Record<string, string[]> | null} known */
  constructor(wanted, known) {
    this.known = known;
    /** @type {string[]} */
    this.requests = [];
    this.refreshed = 0;
    this.names = new Names(async (wantedNames) => {
      this.requests.push(JSON.stringify(wantedNames));
      return this.known;
    });
    this.cell = { wanted: () => wanted, refresh: () => void this.refreshed++ };
    this.names.join(this.cell);
  }
}

test("one request asks for the names in view, and its answer is drawn", async () => {
  const { names, cell, ...notebook } = new Notebook(
    [
      ["variable", "places"],
      ["state", "budget"],
    ],
    { variable: ["places"], state: [] },
  );
  assert.equal(names.isKnown("variable", "places"), undefined);
  await pass();
  assert.deepEqual(notebook.requests.length, 1);
  assert.match(notebook.requests[0], /^\{"variable":\["places"\],"state":\["budget"\]\}$/);
  assert.deepEqual([names.isKnown("variable", "places"), names.isKnown("state", "budget")], [true, false]);
  names.join(cell);
  await pass();
  assert.equal(notebook.requests.length, 1);
});

test("keys pressed one after the other make one request, once they rest", async () => {
  /** @type {[string, string][]} */
  const wanted = [];
  const notebook = new Notebook(wanted, {});
  for (const name of ["p", "pl", "pla"]) {
    wanted.splice(0, 1, ["variable", name]);
    notebook.names.join(notebook.cell);
    await pass(100);
  }
  assert.equal(notebook.requests.length, 0);
  await pass();
  assert.equal(notebook.requests.length, 1);
  assert.match(notebook.requests[0], /\["pla"\]/);
});

test("after cells have run all is asked anew, and until the answer the old one counts", async () => {
  const notebook = new Notebook([["variable", "places"]], { variable: [] });
  await pass();
  notebook.known = { variable: ["places"] };
  notebook.names.expire();
  notebook.names.expire();
  assert.equal(notebook.names.isKnown("variable", "places"), false);
  await pass();
  assert.equal(notebook.names.isKnown("variable", "places"), true);
  assert.equal(notebook.requests.length, 2);
});

test("while a request is under way no other goes out, and what changed meanwhile is asked after it", async () => {
  /** @type {((answer: Record<string, string[]>) => void)[]} */
  const answers = [];
  const names = new Names(
    () =>
      new Promise((resolve) => {
        answers.push(resolve);
      }),
  );
  names.join({ wanted: () => [["variable", "x"]], refresh() {} });
  await pass();
  names.expire();
  await pass();
  names.expire();
  await pass();
  assert.equal(answers.length, 1);
  answers[0]({ variable: [] });
  await pass(0);
  await pass();
  assert.equal(answers.length, 2);
  answers[1]({ variable: ["x"] });
  await pass(0);
  assert.equal(names.isKnown("variable", "x"), true);
});

test("a kernel without an answer is asked once, and nothing is held against its names", async () => {
  const notebook = new Notebook([["variable", "places"]], null);
  await pass();
  notebook.names.join(notebook.cell);
  await pass();
  assert.equal(notebook.names.isKnown("variable", "places"), undefined);
  assert.equal(notebook.requests.length, 1);
});

test("a cell without names asks nothing, nor does one that is gone", async () => {
  const notebook = new Notebook([], {});
  notebook.names.expire();
  await pass();
  assert.equal(notebook.requests.length, 0);
  const closed = new Notebook([["variable", "x"]], {});
  closed.names.leave(closed.cell);
  await pass();
  closed.names.dispose();
  closed.names.expire();
  await pass();
  assert.equal(closed.requests.length, 0);
});

test("another kernel knows nothing of what the last one knew, and an answer that comes late is dropped", async () => {
  const notebook = new Notebook([["variable", "x"]], { variable: ["x"] });
  await pass();
  notebook.names.forget();
  assert.equal(notebook.names.isKnown("variable", "x"), undefined);

  /** @type {((answer: Record<string, string[]>) => void)[]} */
  const answers = [];
  const names = new Names(
    () =>
      new Promise((resolve) => {
        answers.push(resolve);
      }),
  );
  const reader = {
    wanted: () => /** @type {[string, string][]} */ ([["variable", "x"]]),
    refresh: () => names.join(reader),
  };
  names.join(reader);
  await pass();
  names.forget();
  answers[0]({ variable: ["x"] });
  await pass(0);
  assert.equal(names.isKnown("variable", "x"), undefined);
  await pass();
  answers[1]({ variable: [] });
  await pass(0);
  assert.equal(names.isKnown("variable", "x"), false);
});
