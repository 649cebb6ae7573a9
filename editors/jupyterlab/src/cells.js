/**
 * What the cells of adk_nb are made of: their sections, and the tokens of a line. Knows no editor and no kernel.
 *
 * Rules are those of the package: `magics/grammar.py` for lines, `registry/templates.py` for braces,
 * `registry/team_cell.py` for edges and teams, `evaluation/cases.py` for tables.
 */

import grammars from "./magics.json" with { type: "json" };

/** @typedef {{value?: boolean, names?: string, choices?: string[]}} Option */
/** @typedef {{body: string, text: boolean, options: Record<string, Option>}} Grammar */

/**
 * @typedef {object} Token
 * @property {number} from Offset in the line.
 * @property {number} to
 * @property {string} type
 * @property {string} [names] The kind of names that its text is one of: agent, tool, variable, node.
 * @property {string} [problem] Why it is wrong.
 */

/**
 * @typedef {object} Section
 * @property {"magic" | "fence" | "yaml" | "prose" | "edges" | "team" | "table" | "python"} type
 * @property {number} from
 * @property {number} to
 */

/**
 * @typedef {object} Cell
 * @property {Section[]} sections In order; blank lines before the first line belong to none.
 * @property {"" | "variables" | "all"} braces What braces in its prose are: text, variables alone, or state keys too.
 */

export const MAGICS = /** @type {Record<string, Grammar>} */ (grammars);
const NAMES = Object.keys(MAGICS).join("|");
const FIRST_LINE = new RegExp(`^%%(${NAMES})(?![\\w.])`);
const LINE_HEAD = new RegExp(`^([ \\t]*(?:[^\\s=%()#][^=%()#]*(=)[ \\t]*)?)(%%?)(${NAMES})(?=\\s|\\?|;|$)(\\?{0,2})`);
const LONGEST = 3 + Math.max(...Object.keys(MAGICS).map((name) => name.length));
const TEAM = /\s--kind[\s=]+["']?(?!llm\b)\w/;
const TEAM_IN_YAML = /^kind[ \t]*:[ \t]*["']?(?!llm\b)\w/m;
const FENCE = /^---[ \t]*$/;

/** Kinds of names that one can be wrong about: any other text may be a value, too. */
const CHECKED = new Set(["agent", "tool", "variable"]);

/**
 * The sections of a cell; null if nothing in it is of adk_nb.
 * @param {string} text
 * @returns {Cell | null}
 */
export function parseCell(text) {
  const from = text.length - text.trimStart().length;
  const first = FIRST_LINE.exec(text.slice(from, from + LONGEST));
  if (first === null || (from > 0 && text[from - 1] !== "\n")) return parsePython(text, 0);
  const magic = MAGICS[first[1]];
  const to = lineEnd(text, from);
  /** @type {Section} */
  const head = { type: "magic", from, to };
  if (magic.body === "python" || magic.body === "") {
    const below = parsePython(text, to + 1)?.sections ?? python(text, to + 1, text.length);
    return { sections: [head, ...below], braces: "" };
  }
  const matter = magic.text ? [] : frontMatter(text, to);
  const options = text.slice(from, matter.at(-1)?.to ?? to);
  const start = from + options.length + 1;
  const type = bodyType(magic, options, text.slice(start));
  const isProse = type === "prose" && !/\s--raw(?!\S)/.test(text.slice(from, to));
  return {
    sections: [head, ...matter, ...(start < text.length ? [{ type, from: start, to: text.length }] : [])],
    braces: !isProse ? "" : magic.text ? "variables" : "all",
  };
}

/**
 * @param {Grammar} magic
 * @param {string} options The first line, and the front matter.
 * @param {string} body
 * @returns {Section["type"]}
 */
function bodyType(magic, options, body) {
  if (magic.options["--kind"] && (TEAM.test(options) || TEAM_IN_YAML.test(options))) return "team";
  if (magic.body === "table" && !/^\s*\|/.test(body)) return "yaml";
  return /** @type {Section["type"]} */ (magic.body);
}

/**
 * Python with lines of magics in it, from an offset on; null without such a line.
 * @param {string} text
 * @param {number} start
 * @returns {Cell | null}
 */
function parsePython(text, start) {
  if (!text.includes("%", start)) return null;
  /** @type {Section[]} */
  const sections = [];
  let plain = start;
  for (let from = start; from < text.length;) {
    const to = lineEnd(text, from);
    const line = text.slice(from, to);
    if (line.includes("%") && LINE_HEAD.exec(line)?.[3] === "%") {
      sections.push(...python(text, plain, from), { type: "magic", from, to });
      plain = to + 1;
    }
    from = to + 1;
  }
  if (sections.length === 0) return null;
  sections.push(...python(text, plain, text.length));
  return { sections, braces: "" };
}

/** @param {string} text @param {number} from @param {number} to @returns {Section[]} */
function python(text, from, to) {
  return text.slice(from, to).trim() ? [{ type: "python", from, to }] : [];
}

/**
 * Options as YAML between two lines `---`, which may follow the first line; without the second one, there are none.
 * @param {string} text
 * @param {number} end Where the first line ends.
 * @returns {Section[]}
 */
function frontMatter(text, end) {
  const open = end + 1 + (/^\s*?(?=\S)/.exec(text.slice(end + 1))?.[0].length ?? 0);
  const opened = lineEnd(text, open);
  if (!FENCE.test(text.slice(open, opened))) return [];
  for (let from = opened + 1; from < text.length;) {
    const to = lineEnd(text, from);
    if (FENCE.test(text.slice(from, to))) {
      const fences = [
        { from: open, to: opened },
        { from, to },
      ].map((fence) => /** @type {Section} */ ({ type: "fence", ...fence }));
      /** @type {Section[]} */
      const yaml = opened + 1 < from ? [{ type: "yaml", from: opened + 1, to: from }] : [];
      return [fences[0], ...yaml, fences[1]];
    }
    from = to + 1;
  }
  return [];
}

/** @param {string} text @param {number} from */
function lineEnd(text, from) {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

// ---- the line of a magic

const WORD = /[^\s"']*(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+)*/y;
const CAPTURE = /\s*[^\W\d]\w*\s*(<<)(?=\s|$)/y;
const IS_OPTION = /^--?[^\W\d]/;

/**
 * The tokens of a magic's line, cell magic or not.
 * @param {string} line
 * @returns {Token[]}
 */
export function magicTokens(line) {
  const head = LINE_HEAD.exec(line);
  if (head === null) return [];
  const [all, before, sign, percents, name, help] = head;
  const magic = MAGICS[name];
  const at = before.length;
  /** @type {Token[]} */
  const tokens = sign ? [{ from: before.indexOf("="), to: before.indexOf("=") + 1, type: "operator" }] : [];
  tokens.push({ from: at, to: all.length - help.length, type: "magic" });
  if (help) return [...tokens, { from: all.length - help.length, to: all.length, type: "operator" }];
  const walk = { line, mark: percents + name, magic, isCell: percents === "%%", tokens };
  return optionTokens(walk, all.length);
}

/**
 * @param {{line: string, mark: string, magic: Grammar, isCell: boolean, tokens: Token[]}} walk
 * @param {number} start
 * @returns {Token[]}
 */
function optionTokens({ line, mark, magic, isCell, tokens }, start) {
  const isText = magic.text && !isCell;
  const defines = magic.body === "edges" || (magic.body === "prose" && !magic.text);
  let words = 0;
  for (let at = blank(line, captureEnd(line, start, magic, tokens)); at < line.length; at = blank(line, at)) {
    const rest = line.slice(at);
    const end = lastToken(rest, isText);
    if (end) return [...tokens, { from: at, to: end.type === "comment" ? line.length : at + 1, type: end.type }];
    if (/^--(?=\s|$)/.test(rest)) {
      tokens.push({ from: at, to: at + 2, type: "operator" });
      if (isText) return [...tokens, ...textTokens(line, blank(line, at + 2), false)];
      at += 2;
    } else if (IS_OPTION.test(rest)) {
      at = optionToken(line, at, mark, magic, tokens);
    } else {
      const to = wordEnd(line, at);
      const word = line.slice(at, to);
      // The name of an agent, if options follow it; else perhaps one, and perhaps the first word of the text.
      if (isText && (words > 0 || !IS_OPTION.test(line.slice(to).trimStart()))) {
        return [...tokens, ...textTokens(line, at, words === 0)];
      }
      tokens.push({ from: at, to, type: wordType(word, defines && words === 0) });
      words += 1;
      at = to;
    }
  }
  return tokens;
}

/** The semicolon or the comment that ends a line. @param {string} rest @param {boolean} isText */
function lastToken(rest, isText) {
  if (/^;\s*$/.test(rest)) return { type: "operator" };
  return !isText && rest[0] === "#" ? { type: "comment" } : null;
}

/**
 * Add the sign after the variable for a reply; return where it ends.
 * @param {string} line
 * @param {number} start
 * @param {Grammar} magic
 * @param {Token[]} tokens
 */
function captureEnd(line, start, magic, tokens) {
  CAPTURE.lastIndex = start;
  const capture = magic.text ? CAPTURE.exec(line) : null;
  if (capture === null) return start;
  const end = start + capture[0].length;
  tokens.push({ from: end - capture[1].length, to: end, type: "operator" });
  return end;
}

/**
 * Add an option with its value; return where they end.
 * @param {string} line
 * @param {number} from
 * @param {string} mark
 * @param {Grammar} magic
 * @param {Token[]} tokens
 */
function optionToken(line, from, mark, magic, tokens) {
  const end = wordEnd(line, from);
  const sign = line.slice(from, end).indexOf("=");
  const to = sign < 0 ? end : from + sign;
  const name = line.slice(from, to);
  const option = Object.hasOwn(magic.options, name) ? magic.options[name] : null;
  tokens.push(
    option ? { from, to, type: "option" } : { from, to, type: "wrong", problem: `${mark} has no option ${name}` },
  );
  if (sign >= 0) {
    tokens.push({ from: to, to: to + 1, type: "operator" });
    valueTokens(line, to + 1, end, option, tokens);
    return end;
  }
  const next = blank(line, end);
  if (!option?.value || next === line.length || IS_OPTION.test(line.slice(next))) return end;
  const valueEnd = wordEnd(line, next);
  valueTokens(line, next, valueEnd, option, tokens);
  return valueEnd;
}

/**
 * @param {string} line
 * @param {number} from
 * @param {number} to
 * @param {Option | null} option
 * @param {Token[]} tokens
 */
function valueTokens(line, from, to, option, tokens) {
  const value = line.slice(from, to);
  if (from === to) return;
  if (option?.choices && !option.choices.includes(value.replace(/^(["'])(.*)\1$/, "$2"))) {
    tokens.push({ from, to, type: "wrong", problem: `${value} is not one of ${option.choices.join(", ")}` });
  } else if (CHECKED.has(option?.names ?? "") && /^\w+(?:,\w*)*$/.test(value)) {
    for (const { 0: name, index } of value.matchAll(/\w+/g)) {
      tokens.push({ from: from + index, to: from + index + name.length, type: "value", names: option?.names });
    }
  } else {
    tokens.push({ from, to, type: /["']/.test(value) ? "string" : "value" });
  }
}

/** @param {string} word @param {boolean} isDefinition */
function wordType(word, isDefinition) {
  if (/["']/.test(word)) return "string";
  return isDefinition ? "definition" : "word";
}

/**
 * @param {string} line
 * @param {number} start
 * @param {boolean} isFirst The first word may be the name of an agent.
 * @returns {Token[]}
 */
function textTokens(line, start, isFirst) {
  const nameEnd = wordEnd(line, start);
  const isName = isFirst && /^\w+$/.test(line.slice(start, nameEnd));
  const from = isName ? blank(line, nameEnd) : start;
  const end = line.trimEnd().length;
  const to = line[end - 1] === ";" ? end - 1 : end;
  /** @type {Token[]} */
  const tokens = isName ? [{ from: start, to: nameEnd, type: "address", names: "agent" }] : [];
  if (from < to) tokens.push({ from, to, type: "text" });
  if (from <= to && to < end) tokens.push({ from: to, to: end, type: "operator" });
  return tokens;
}

/** @param {string} line @param {number} at */
function blank(line, at) {
  return line.length - line.slice(at).trimStart().length;
}

/** The end of a word, without a semicolon that ends the line. @param {string} line @param {number} at */
function wordEnd(line, at) {
  WORD.lastIndex = at;
  const end = at + (WORD.exec(line)?.[0].length || 1);
  return end > at + 1 && /^;\s*$/.test(line.slice(end - 1)) ? end - 1 : end;
}
