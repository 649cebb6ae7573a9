import assert from "node:assert/strict";
import { test } from "node:test";
import { patch, told } from "../../editors/jupyterlab/src/agent_cells.js";

/** Half of a character of two units. */
const HALF = /[\ud800-\udfff]/u;

test("an edit is the smallest that makes the new text, and never cuts a character in two", () => {
  const texts = [
    "",
    "a",
    "aa",
    "rows = [1]",
    "rows = [1, 2]",
    "rows = [2]",
    "x😀y",
    "x😃y",
    "😀😀",
    "😀",
    "é\n",
    "\n\n",
  ];
  for (const before of texts) {
    for (const after of texts) {
      const { from, to, text } = patch(before, after);
      assert.equal(before.slice(0, from) + text + before.slice(to), after);
      assert.equal(HALF.test(before.slice(from, to)) || HALF.test(text), false);
    }
  }
  assert.deepEqual(patch("rows = [1]", "rows = [1, 2]"), { from: 9, to: 9, text: ", 2" });
  assert.deepEqual(patch("x😀y", "x😃y"), { from: 1, to: 3, text: "😃" });
});

test("an output is told as text without colours and overwritten lines, a picture and a page by their type", () => {
  const outputs = [
    { output_type: "stream", text: ["\u001b[31mred\u001b[0m\n", "10 %\r100 %\r\nend\n"] },
    { output_type: "display_data", data: { "text/plain": "<Figure>", "image/png": "iVBOR" } },
    { output_type: "display_data", data: { "text/plain": "", "text/html": "<b>x</b>" } },
    { output_type: "display_data", data: { "text/plain": "", "text/html": "" } },
    { output_type: "execute_result", data: { "text/plain": "42" } },
  ];
  assert.deepEqual(told(outputs), {
    output: "red\n100 %\nend\n<Figure>\n[image/png]\n[text/html]\n42",
    error: "",
  });
});

test("an error is told apart, and of a long output its beginning and its end", () => {
  const error = {
    output_type: "error",
    ename: "KeyError",
    evalue: "'x'",
    traceback: ["\u001b[0;31mKeyError\u001b[0m: 'x'"],
  };
  const long = { output_type: "stream", text: `${"a".repeat(5000)}the end` };
  const { output, error: said } = told([long, error, { ...error, traceback: [] }]);
  assert.equal(said, "KeyError: 'x'\nKeyError: 'x'");
  assert.match(output, /^a{1400}\n… 3107 characters …\na+the end$/);
});
