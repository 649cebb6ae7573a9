import { markdown } from "@codemirror/lang-markdown";
import { python } from "@codemirror/lang-python";
import { StreamLanguage, ensureSyntaxTree, language } from "@codemirror/language";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { EditorState } from "@codemirror/state";
import { classHighlighter, highlightTree } from "@lezer/highlight";
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellLanguage } from "../../editors/jupyterlab/src/language.js";
import { marksIn } from "../../editors/jupyterlab/src/marks.js";

const LAB = /** @type {Record<string, import("@lezer/common").Parser>} */ ({
  Markdown: markdown().language.parser,
  YAML: StreamLanguage.define(yaml).parser,
  ipython: python().language.parser,
});
const EXTENSIONS = [cellLanguage(async (name) => LAB[name]), python()];
const AGENT = "%%agent clerk -t pay\nPay with care and not twice, or ask: {user}.\n\n- **Once** is `enough`\n";

/** @param {string} doc */
async function editor(doc) {
  const state = EditorState.create({ doc, extensions: EXTENSIONS });
  styles(state); // a language that a section needs is loaded when it is first parsed
  await new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
  return EditorState.create({ doc, extensions: EXTENSIONS });
}

/** @param {EditorState} state @returns {string[]} The texts with a style, and their styles. */
function styles(state) {
  const tree = ensureSyntaxTree(state, state.doc.length, 5000);
  assert.equal(tree !== null, true);
  /** @type {string[]} */
  const found = [];
  if (tree)
    highlightTree(tree, classHighlighter, (from, to, names) => void found.push(`${state.sliceDoc(from, to)} ${names}`));
  return found;
}

/** @param {string[]} found */
const keywords = (found) => found.filter((style) => style.includes("tok-keyword")).map((style) => style.split(" ")[0]);

/** @param {EditorState} state @param {number} from @param {number} to @param {string} insert */
const edited = (state, from, to, insert) => state.update({ changes: { from, to, insert } }).state;

test("prose has no keywords of Python, and its markdown is read", async () => {
  const found = styles(await editor(AGENT));
  assert.deepEqual(keywords(found), []);
  assert.match(found.join("\n"), /Once tok-strong/);
});

test("a cell of Python is the lab's own", async () => {
  const state = await editor("with x as y:\n    pass");
  assert.equal(state.facet(language)?.name, "python");
  assert.deepEqual(keywords(styles(state)), ["with", "as", "pass"]);
});

test("a line of a magic among Python has no keywords, and the lines around it have theirs", async () => {
  const state = await editor("for x in y:\n    %chat clerk this is not in\n    if x: pass\n");
  assert.deepEqual(keywords(styles(state)), ["for", "in", "if", "pass"]);
});

test("a first line that becomes another magic makes the cell another language, and undone it is as before", async () => {
  const state = await editor(AGENT.replace("twice", "not in"));
  const before = styles(state);
  const tool = edited(state, 2, 7, "tool");
  assert.deepEqual(keywords(styles(tool)).slice(0, 3), ["with", "and", "not"]);
  const text = edited(state, 0, 2, "");
  assert.equal(text.facet(language)?.name, "python");
  assert.deepEqual(styles(edited(tool, 2, 6, "agent")), before);
  assert.deepEqual(styles(edited(text, 0, 0, "%%")), before);
});

test("what is typed bit by bit is read as what is opened whole", async () => {
  const matter = "%%agent clerk -t pay\n---\nmodel: x # why\n---\nPay, and **not** twice.\n";
  for (const whole of [matter, AGENT, "%%workflow w\nSTART -> a -[b]-> c\n", "x = 1\n%chat a is it?\nif x: pass\n"]) {
    const expected = styles(await editor(whole));
    let state = await editor("");
    for (const sign of whole) {
      state = edited(state, state.doc.length, state.doc.length, sign);
      styles(state);
    }
    assert.deepEqual(styles(state), expected);
  }
});

test("after any edits a cell is read as if it had been opened so", async () => {
  const pieces = [
    "\n",
    "---\n",
    "and ",
    "**",
    "%chat a b\n",
    "%%agent x\n",
    "| a | b |\n",
    "->",
    "{a}",
    "'''",
    "(",
    "# ",
  ];
  let seed = 11;
  const next = (/** @type {number} */ most) => (seed = (seed * 1103515245 + 12345) % 2147483648) % most;
  await editor("%%agent a\n---\na: b\n---\nb\n");
  await editor("%%tool\nx\n");
  for (const start of [
    AGENT,
    "%%tool\ndef f(): pass\n",
    "x = 1\n%chat a b\ny = 2\n",
    "%%eval a\n| a | b |\n|---|---|\n",
  ]) {
    let state = await editor(start);
    for (let round = 0; round < 50; round++) {
      const from = next(state.doc.length + 1);
      const to = Math.min(state.doc.length, from + (next(3) ? 0 : next(12)));
      state = edited(state, from, to, pieces[next(pieces.length)]);
      const text = state.doc.toString();
      assert.deepEqual(
        [text, ...styles(state)],
        [text, ...styles(EditorState.create({ doc: text, extensions: EXTENSIONS }))],
      );
    }
  }
});

test("marks stand on the whole of a cell or a part of it, and only where braces are placeholders", async () => {
  const state = await editor("%%agent a --modle b -t pay\nHi {user} in {{place}}, {unclosed\n");
  const marks = marksIn(state, { from: 0, to: state.doc.length });
  assert.deepEqual(
    marks.map(({ from, to, type, name }) => [state.sliceDoc(from, to), type, name ?? ""]),
    [
      ["--modle", "wrong", ""],
      ["pay", "value", "pay"],
      ["{user}", "state", "user"],
      ["{{place}}", "variable", "place"],
    ],
  );
  const line = state.doc.line(2);
  assert.deepEqual(marksIn(state, { from: line.from + 8, to: line.to }), marks.slice(2));
  const tool = await editor("%%tool\nx = f'{user}'\n");
  assert.deepEqual(marksIn(tool, { from: 0, to: tool.doc.length }), []);
});

test("without a language of the lab a section is plain text", async () => {
  const bare = cellLanguage(async () => null);
  const broken = cellLanguage(() => Promise.reject(new Error("offline")));
  for (const extension of [bare, broken]) {
    const state = EditorState.create({ doc: AGENT, extensions: [extension] });
    styles(state);
    await new Promise((resolve) => {
      setTimeout(resolve, 0);
    });
    const found = styles(EditorState.create({ doc: AGENT, extensions: [extension] }));
    assert.deepEqual(found, styles(EditorState.create({ doc: AGENT.split("\n")[0], extensions: [extension] })));
  }
});
