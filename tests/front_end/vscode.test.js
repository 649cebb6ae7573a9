import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

// Paths from the folder of the tests, in which they run.
const EXTENSION = "../../editors/vscode";
const MODULES = "../../build/front_end/node_modules";

/** @param {string} path */
const json = (path) => JSON.parse(readFileSync(path, "utf-8"));
/** VS Code's own grammars, as they are packed for others: all, since markdown has code in most languages. */
const OF_VSCODE = new Map(
  readdirSync(`${MODULES}/tm-grammars/grammars`).map((name) => {
    const grammar = json(`${MODULES}/tm-grammars/grammars/${name}`);
    return [grammar.scopeName, grammar];
  }),
);
/** @type {Record<string, {options: Record<string, unknown>}>} */
const MAGICS = json("../../editors/jupyterlab/src/magics.json");
/** @type {{path: string, scopeName: string, injectTo: string[]}[]} */
const GRAMMARS = json(`${EXTENSION}/package.json`).contributes.grammars;

const loaded = oniguruma.loadWASM(readFileSync(`${MODULES}/vscode-oniguruma/release/onig.wasm`).buffer);
const registry = new textmate.Registry({
  onigLib: loaded.then(() => ({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  })),
  loadGrammar: async (scope) => {
    const own = GRAMMARS.find(({ scopeName }) => scopeName === scope);
    if (own) return json(`${EXTENSION}/${own.path}`);
    return OF_VSCODE.get(scope) ?? null;
  },
  getInjections: (scope) =>
    GRAMMARS.filter(({ injectTo }) => injectTo.includes(scope)).map(({ scopeName }) => scopeName),
});

/**
 * The tokens of a cell, which VS Code takes for a document in Python.
 * @param {string} cell
 * @returns {Promise<[string, string][]>} Texts and their scopes.
 */
async function tokens(cell) {
  const grammar = await registry.loadGrammar("source.python");
  let state = textmate.INITIAL;
  return cell.split("\n").flatMap((line) => {
    const result = grammar?.tokenizeLine(line, state);
    assert.equal(result?.stoppedEarly, false);
    state = result?.ruleStack ?? state;
    return (result?.tokens ?? []).map(({ startIndex, endIndex, scopes }) => {
      return /** @type {[string, string]} */ ([line.slice(startIndex, endIndex), scopes.join(" ")]);
    });
  });
}

/** The texts that have a scope. @param {string} cell @param {string} scope */
async function having(cell, scope) {
  const found = await tokens(cell);
  return found.filter(([text, scopes]) => scopes.includes(scope) && text.trim()).map(([text]) => text.trim());
}

/** The texts that are highlighted as Python. @param {string} cell */
async function python(cell) {
  const found = await tokens(cell);
  return found.filter(([_, scopes]) => /(?<!source)\.python( |$)/.test(scopes)).map(([text]) => text.trim());
}

const AGENT =
  "%%agent clerk -t pay --modle x\nPay with care and **not** twice in {user:name?}, or {{prices}} {unclosed.\n";

test("the first line of every cell and every line magic has its name and its options highlighted", async () => {
  for (const [name, { options }] of Object.entries(MAGICS)) {
    for (const mark of [`%%${name}`, `%${name}`]) {
      const line = [mark, "clerk", ...Object.keys(options)].join(" ");
      assert.deepEqual(await having(line, "keyword.control.magic"), [mark]);
      assert.deepEqual(await having(line, "attribute-name"), Object.keys(options));
      assert.deepEqual(await python(line), []);
    }
  }
});

test("prose is markdown with placeholders, and has no keywords of Python", async () => {
  assert.deepEqual(await having(AGENT, "keyword.control.magic"), ["%%agent"]);
  assert.deepEqual(await having(AGENT, "entity.name.function"), ["clerk"]);
  assert.deepEqual(await having(AGENT, "attribute-name"), ["-t"]);
  assert.deepEqual(await having(AGENT, "invalid.illegal.unknown-option"), ["--modle"]);
  assert.deepEqual(await having(AGENT, "variable.parameter.state"), ["{user:name?}"]);
  assert.deepEqual(await having(AGENT, "variable.other.constant.template"), ["{{prices}}"]);
  assert.deepEqual(await having(AGENT, "markup.bold"), ["**", "not", "**"]);
  assert.deepEqual(await python(AGENT), []);
  assert.deepEqual((await having(AGENT, "keyword.")).slice(1), []);
});

test("front matter is YAML, and a later line of dashes is prose", async () => {
  const cell = "%%agent a\n---\nmodel: offline\n---\nRead it.\n\n---\n\nmodel: x\n";
  assert.equal((await having(cell, "entity.name.tag.yaml")).join(""), "model");
  assert.deepEqual(await having(cell, "front-matter"), ["---", "---"]);
});

test("edges, teams and tables are what they are", async () => {
  const edges = "%%workflow w --root # why\nSTART -> a -[ok, *]-> b # and so on\nb -> END\n";
  assert.deepEqual(await having(edges, "keyword.operator"), ["->", "-[", "]->", "->"]);
  assert.deepEqual(await having(edges, "string.unquoted.route"), ["ok, *"]);
  assert.deepEqual(await having(edges, "constant.language"), ["START", "END"]);
  assert.deepEqual(await having(edges, "comment.line"), ["# why", "# and so on"]);
  const team = "%%agent t --kind loop\na -> b\nuntil: x >= 8 and True\n";
  assert.deepEqual(await having(team, "keyword.control.adk-nb"), ["until"]);
  assert.deepEqual(await having(team, "keyword.operator.logical.python"), ["and"]);
  const table = "%%eval a --repeats 3\n| message | calls |\n| --- | --- |\n| Is it in or not? | pay() |\n";
  assert.deepEqual((await having(table, "markup.heading")).join(" "), "| message | calls |");
  assert.equal((await having(table, "punctuation.separator")).filter((text) => text === "|").length, 9);
  assert.deepEqual(await python(table), []);
  assert.equal((await having("%%eval a\n- message: Hi\n", "entity.name.tag.yaml")).join(""), "message");
});

test("tools are Python below their line, and lines of magics stand among Python", async () => {
  const tool = '%%tool --confirm "amount > 100"\ndef pay(to): return to and 1\n';
  assert.deepEqual(await having(tool, "string.quoted.adk-nb"), ['"amount > 100"']);
  assert.deepEqual(await having(tool, "storage.type.function.python"), ["def"]);
  const lines = "x = 1\nif x:\n    ans = %chat clerk --new Is it {{x}} and not {y} in --raw?\nfor y in x: pass\n";
  assert.deepEqual(await having(lines, "keyword.control.magic"), ["%chat"]);
  assert.deepEqual(await having(lines, "attribute-name"), ["--new"]);
  assert.deepEqual(await having(lines, "variable.other.constant.template"), ["{{x}}"]);
  assert.deepEqual(await having(lines, "variable.parameter.state"), []);
  assert.deepEqual(await having(lines, "keyword.operator.logical.python"), []);
  assert.deepEqual(await having(lines, "keyword.control.flow.python"), ["if", "for", "in", "pass"]);
  assert.deepEqual(await having("%state budget=3 --jsn\n", "invalid.illegal"), ["--jsn"]);
});

test("Python without magics is VS Code's own", async () => {
  for (const cell of [
    "x = 5 % chat\n",
    's = """\n%%agent a\n%chat b and c\n"""\n',
    "# %chat and\n",
    "%%time\nx = 1\n",
  ]) {
    assert.deepEqual(await having(cell, "adk-nb"), []);
  }
});
