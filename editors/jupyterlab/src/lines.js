/** The tokens of a line below the first: edges of a workflow, members of a team, rows of a table, braces in prose. */

/** @typedef {import("./cells.js").Token} Token */

const EDGE =
  /(?<comment>#.*)|-\[(?<routes>[^\]]*)\]->|(?<arrow>->|→)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>[(),])|(?<wrong>[^\s\w(),#]+)/gu;
const TEAM = /(?<comment>#.*)|(?<arrow>->|→)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>,)|(?<wrong>[^\s\w,#]+)/gu;
const UNTIL = /^[ \t]*(until)[ \t]*(:)/;
const EXPRESSION =
  /(?<string>'[^']*'|"[^"]*")|(?<number>\b\d+(?:\.\d+)?\b)|(?<keyword>\b(?:and|or|not|in|is|if|else|True|False|None)\b)|(?<operator>[<>=!+\-*/%]+)/g;
const ENDS = new Set(["START", "END"]);

/**
 * The tokens of a line of a `%%workflow` cell.
 * @param {string} line
 * @returns {Token[]}
 */
export function edgeTokens(line) {
  return chainTokens(line, EDGE, "node");
}

/**
 * The tokens of a line of an `%%agent --kind` cell.
 * @param {string} line
 * @returns {Token[]}
 */
export function teamTokens(line) {
  const until = UNTIL.exec(line);
  if (until === null) return chainTokens(line, TEAM, "agent");
  const [head, word] = until;
  return [
    { from: head.indexOf(word), to: head.indexOf(word) + word.length, type: "keyword" },
    { from: head.length - 1, to: head.length, type: "operator" },
    ...[...line.slice(head.length).matchAll(EXPRESSION)].map((match) => {
      const from = head.length + match.index;
      const [type] = /** @type {[string, string]} */ (Object.entries(match.groups ?? {}).find(([_, found]) => found));
      return { from, to: from + match[0].length, type };
    }),
  ];
}

/**
 * @param {string} line
 * @param {RegExp} pattern
 * @param {string} names The kind of its names.
 * @returns {Token[]}
 */
function chainTokens(line, pattern, names) {
  return [...line.matchAll(pattern)].flatMap((match) => {
    const { comment, routes, arrow, name, wrong } = match.groups ?? {};
    const [from, to] = [match.index, match.index + match[0].length];
    if (comment) return [{ from, to, type: "comment" }];
    if (arrow) return [{ from, to, type: "arrow" }];
    if (ENDS.has(name)) return [{ from, to, type: "end" }];
    if (name) return [{ from, to, type: "name", names }];
    if (wrong) return [{ from, to, type: "wrong", problem: `${wrong} is neither a name nor an arrow` }];
    if (routes === undefined) return [{ from, to, type: "separator" }];
    return [
      { from, to: from + 2, type: "arrow" },
      { from: from + 2, to: to - 3, type: "string" },
      { from: to - 3, to, type: "arrow" },
    ].filter((token) => token.from < token.to);
  });
}

/**
 * The tokens of a row of a table.
 * @param {string} line
 * @param {number} row From 0, the line with the names of the columns.
 * @returns {Token[]}
 */
export function rowTokens(line, row) {
  return [...line.matchAll(/(?<!\\)\||(?:\\\||[^|\s])(?:\\\||[^|])*?(?=\s*(?:\||$))/g)].map(({ 0: text, index }) => {
    const isSeparator = text === "|" || (row === 1 && /^:?-+:?$/.test(text));
    return { from: index, to: index + text.length, type: isSeparator ? "separator" : row === 0 ? "heading" : "cell" };
  });
}

const NAME = "[\\p{L}_][\\p{L}\\p{N}_]*";
const PATH = `${NAME}(?:\\.${NAME}|\\[(?:-?\\d+|'[^'\\n\\]]*'|"[^"\\n\\]]*")\\])*`;
const BRACES = new RegExp(
  [
    "\\\\\\{+[^{}\\n]*\\}+", // escaped
    "\\{{3,}[^{}]*\\}+",
    `\\{\\{(?<variable>${PATH})\\}\\}`,
    "\\{\\{[^{}\\n]*\\}\\}",
    `(?<![$\\{])\\{(?<key>(?:(?:app|user|temp):)?${NAME}\\??|artifact\\.[^\\s{}?]+\\??)\\}(?!\\})`,
  ].join("|"),
  "gu",
);

/**
 * @typedef {object} Placeholder
 * @property {number} from Offset of the first brace.
 * @property {number} to
 * @property {"variable" | "state"} type
 * @property {string} name Of the variable, or the state key with its scope.
 * @property {boolean} needed False for an optional key, and for an artifact: neither is looked up.
 */

/**
 * The placeholders in prose; other braces are text.
 * @param {string} text
 * @param {{keys: boolean}} options `keys`: `{key}` is a key of the state; else it is text.
 * @returns {Placeholder[]}
 */
export function placeholders(text, { keys }) {
  if (!text.includes("{")) return [];
  return [...text.matchAll(BRACES)].flatMap(
    /** @returns {Placeholder[]} */ (match) => {
      const { variable, key } = match.groups ?? {};
      const place = { from: match.index, to: match.index + match[0].length };
      if (variable) return [{ ...place, type: "variable", name: variable.split(/[.[]/)[0], needed: true }];
      if (!key || !keys) return [];
      return [{ ...place, type: "state", name: key.replace(/\?$/, ""), needed: !/\?$|^artifact\./.test(key) }];
    },
  );
}
