import assert from "node:assert/strict";
import { test } from "node:test";
import { MAGICS, magicTokens, parseCell } from "../../editors/jupyterlab/src/cells.js";
import { edgeTokens, placeholders, rowTokens, teamTokens } from "../../editors/jupyterlab/src/lines.js";

/** @typedef {import("../../editors/jupyterlab/src/cells.js").Token} Token */

/** @param {string} line @param {Token[]} tokens */
const read = (line, tokens) => tokens.map(({ from, to, type }) => `${type} ${line.slice(from, to)}`);

/** @param {string} line */
const magic = (line) => read(line, magicTokens(line));

/** @param {string} text */
const sections = (text) => parseCell(text)?.sections.map(({ type, from, to }) => [type, text.slice(from, to)]) ?? null;

/** @param {string} text @param {boolean} keys */
const marked = (text, keys = true) =>
  placeholders(text, { keys }).map(({ from, to, type, name, needed }) => [text.slice(from, to), type, name, needed]);

test("a cell of an agent is its line and prose", () => {
  assert.deepEqual(sections("%%agent clerk -t pay\nYou pay, and nothing twice."), [
    ["magic", "%%agent clerk -t pay"],
    ["prose", "You pay, and nothing twice."],
  ]);
  assert.equal(parseCell("%%agent clerk\nHi {name}.")?.braces, "all");
  assert.equal(parseCell("%%agent clerk --raw\nHi {name}.")?.braces, "");
  assert.equal(parseCell("%%chat clerk\nHi {name}.")?.braces, "variables");
});

test("front matter is YAML between two lines, and prose without the second", () => {
  const matter = "%%agent clerk\n---\nmodel: offline\n---\nYou pay.";
  assert.deepEqual(
    sections(matter)?.map(([type]) => type),
    ["magic", "fence", "yaml", "fence", "prose"],
  );
  assert.deepEqual(
    sections("%%agent clerk\n---\nmodel: offline\nYou pay.")?.map(([type]) => type),
    ["magic", "prose"],
  );
  assert.deepEqual(
    sections("%%agent clerk\n\n---\n---\n")?.map(([type]) => type),
    ["magic", "fence", "fence"],
  );
});

test("an agent of a kind has members below its line, wherever the kind is written", () => {
  assert.deepEqual(sections("%%agent both --kind parallel\na, b")?.[1], ["team", "a, b"]);
  assert.deepEqual(sections("%%agent both --kind=loop\na, b")?.[1], ["team", "a, b"]);
  assert.deepEqual(sections("%%agent both\n---\nkind: parallel\n---\na, b")?.at(-1), ["team", "a, b"]);
  assert.deepEqual(sections("%%agent one --kind llm\nHi.")?.[1], ["prose", "Hi."]);
});

test("the other cells are edges, tables or YAML of cases, and Python", () => {
  assert.deepEqual(sections("%%workflow w\na -> b")?.[1], ["edges", "a -> b"]);
  assert.deepEqual(sections("%%eval a\n| message |")?.[1], ["table", "| message |"]);
  assert.deepEqual(sections("%%eval a\n- message: Hi")?.[1], ["yaml", "- message: Hi"]);
  assert.deepEqual(sections("%%tool\ndef f(): ...")?.[1], ["python", "def f(): ..."]);
});

test("lines of magics are found among Python, and nothing else is taken for one", () => {
  assert.deepEqual(sections("x = 1\nans = %chat clerk How and why?\nprint(x)"), [
    ["python", "x = 1\n"],
    ["magic", "ans = %chat clerk How and why?"],
    ["python", "print(x)"],
  ]);
  assert.deepEqual(sections("for x in y:\n    %chat clerk {{x}}"), [
    ["python", "for x in y:\n"],
    ["magic", "    %chat clerk {{x}}"],
  ]);
  for (const text of [
    "",
    "\n\n",
    "x = 5 % chat",
    "print('%chat clerk hello')",
    "# %%agent clerk",
    "%%time\nx = 1",
    "%%agents_of_mine x",
    "%timeit chat",
    "x = 1\n%%agent clerk\nHi.",
  ]) {
    assert.equal(sections(text), null);
  }
});

test("a cell that begins with blank lines is one of its magic all the same", () => {
  assert.deepEqual(sections("\n\n%%agent a\nHi.")?.[0], ["magic", "%%agent a"]);
});

test("a line of a magic has its name, options that it knows, and their values", () => {
  assert.deepEqual(magic(`%%agent weather -m offline --tools=get,wind --description "a, b" --root # why`), [
    "magic %%agent",
    "definition weather",
    "option -m",
    "value offline",
    "option --tools",
    "operator =",
    "value get",
    "value wind",
    "option --description",
    `string "a, b"`,
    "option --root",
    "comment # why",
  ]);
  assert.deepEqual(
    magicTokens("%%agent a -t get,wind").map(({ names }) => names),
    [undefined, undefined, undefined, "tool", "tool"],
  );
});

test("an unknown option and a value that cannot be are wrong, and say so", () => {
  const tokens = magicTokens("%%agent a --modle x --mode chatty");
  assert.deepEqual(
    tokens.filter(({ problem }) => problem).map(({ type, problem }) => [type, problem]),
    [
      ["wrong", "%%agent has no option --modle"],
      ["wrong", "chatty is not one of chat, single_turn, task"],
    ],
  );
  assert.deepEqual(magic("%%agent a --constructor"), ["magic %%agent", "definition a", "wrong --constructor"]);
});

test("the text of a message is text, whatever is in it", () => {
  assert.deepEqual(magic("%chat -5 degrees, or --new?"), ["magic %chat", "text -5 degrees, or --new?"]);
  assert.deepEqual(magic("%chat clerk Pay 'Anna;"), ["magic %chat", "address clerk", "text Pay 'Anna", "operator ;"]);
  assert.deepEqual(magic("%chat clerk --new -s two How -m?"), [
    "magic %chat",
    "word clerk",
    "option --new",
    "option -s",
    "value two",
    "text How -m?",
  ]);
  assert.deepEqual(magic("ans = %chat -- -m"), ["operator =", "magic %chat", "operator --", "text -m"]);
  assert.deepEqual(magic("%%chat ans << clerk"), ["magic %%chat", "operator <<", "word clerk"]);
  assert.deepEqual(magic("%chat?"), ["magic %chat", "operator ?"]);
});

test("lines that are not finished have the tokens they have so far", () => {
  assert.deepEqual(magic("%%agent"), ["magic %%agent"]);
  assert.deepEqual(magic("%%agent a -t"), ["magic %%agent", "definition a", "option -t"]);
  assert.deepEqual(magic("%%agent a -t x,"), ["magic %%agent", "definition a", "option -t", "value x"]);
  assert.deepEqual(magic(`%%tool --confirm "amount`), ["magic %%tool", "option --confirm", `string "amount`]);
  assert.deepEqual(magic("%%agent a --"), ["magic %%agent", "definition a", "operator --"]);
});

test("tokens of every line lie in it, in order, and do not overlap", () => {
  const signs = [
    "%%agent",
    "%chat",
    " ",
    "  ",
    "--",
    "-m",
    "=",
    '"',
    "'",
    "{",
    "a",
    "ä",
    "x,y",
    "<<",
    ";",
    "#",
    "\\",
    "|",
    "->",
  ];
  let seed = 7;
  const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (let round = 0; round < 3000; round++) {
    const head = ["%%agent", "%chat", "x = %chat", "%%eval", ""][Math.floor(next() * 5)];
    const line = head + Array.from({ length: 8 }, () => signs[Math.floor(next() * signs.length)]).join("");
    for (const tokens of [magicTokens(line), edgeTokens(line), teamTokens(line), rowTokens(line, round % 3)]) {
      let end = 0;
      for (const { from, to } of tokens) {
        assert.equal([line, from >= end && to > from && to <= line.length].join(), [line, true].join());
        end = to;
      }
    }
  }
});

test("edges have arrows, routes, ends and names", () => {
  const line = "START -> sort -[bug, *]-> (a, b) → END # why";
  assert.deepEqual(read(line, edgeTokens(line)), [
    "end START",
    "arrow ->",
    "name sort",
    "arrow -[",
    "string bug, *",
    "arrow ]->",
    "separator (",
    "name a",
    "separator ,",
    "name b",
    "separator )",
    "arrow →",
    "end END",
    "comment # why",
  ]);
  assert.deepEqual(read("a => b", edgeTokens("a => b")), ["name a", "wrong =>", "name b"]);
  const until = "until: state['x'] >= 8 and ok";
  assert.deepEqual(read(until, teamTokens(until)), [
    "keyword until",
    "operator :",
    "string 'x'",
    "operator >=",
    "number 8",
    "keyword and",
  ]);
});

test("a table has columns, bars and cells, in which an escaped bar is text", () => {
  const rows = ["| message | answer |", "| --- | :-: |", "| this \\| or that | a b |"];
  assert.deepEqual(
    rows.map((row, number) => read(row, rowTokens(row, number)).filter((token) => token !== "separator |")),
    [
      ["heading message", "heading answer"],
      ["separator ---", "separator :-:"],
      ["cell this \\| or that", "cell a b"],
    ],
  );
});

test("braces are placeholders by the rules of the package", () => {
  assert.deepEqual(marked("{key} {user:name?} {artifact.plan.txt} {{places}} {{a.b['c'][0]}}"), [
    ["{key}", "state", "key", true],
    ["{user:name?}", "state", "user:name", false],
    ["{artifact.plan.txt}", "state", "artifact.plan.txt", false],
    ["{{places}}", "variable", "places", true],
    ["{{a.b['c'][0]}}", "variable", "a", true],
  ]);
  assert.deepEqual(marked("\\{key} {{{x}}} {{ x }} ${x} {a b} {unclosed {} {1} {x: 1}"), []);
  assert.deepEqual(marked("{key} {{x}}", false), [["{{x}}", "variable", "x", true]]);
});

test("every magic of the package is there, with what an editor needs of it", () => {
  assert.equal(MAGICS.agent.body, "prose");
  assert.equal(MAGICS.chat.text, true);
  assert.deepEqual(MAGICS.agent.options["-t"], { value: true, names: "tool" });
});
