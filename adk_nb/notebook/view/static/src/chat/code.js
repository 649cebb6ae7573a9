// Blocks of code in an answer: their colours, and a button that copies them.

import { copyButton, el, setAttribute, setLabel } from "../elements.js";

const LONGEST = 20_000; // letters of a block that gets colours
/** @param {string} text */
const words = (text) => new Set(text.split(" "));
const KEYWORDS = words(
  "and as assert async await begin break case catch class const continue def default del do elif else end enum except " +
    "export extends final finally fn for from func function global if impl implements import in instanceof interface is " +
    "lambda let match mut new nonlocal not of or package pass private protected pub public raise return select static " +
    "struct super switch this throw try type typeof use using var void while with yield",
);
const CONSTANTS = words("False None True false nil null self true undefined");
const SQL = words(
  "all alter asc between by create delete desc distinct drop exists full group having index inner insert into join key " +
    "left like limit null offset on order outer primary right set table then union unique update values view when where",
);
const WITH_HASH = words("bash console dockerfile ini makefile perl py python python3 r ruby sh shell toml yaml yml");
const PLAIN = words("log markdown md output plain plaintext text txt").add("");

/** @param {string} language */
function tokens(language) {
  const comment = WITH_HASH.has(language) ? "#[^\\n]*" : language === "sql" ? "--[^\\n]*" : "//[^\\n]*|/\\*[^]*?\\*/";
  const text = `"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\``;
  const number = "\\b(?:0[xX][\\da-fA-F]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b";
  return new RegExp(`(${comment})|(${text})|(${number})|(@?[\\p{L}_$][\\p{L}\\p{N}_$]*)(?=(\\s*\\()?)`, "gu");
}

/**
 * @param {string} word
 * @param {string} language
 * @param {boolean} isCalled
 */
function kindOf(word, language, isCalled) {
  if (language === "json") return CONSTANTS.has(word) ? "constant" : "";
  if (word.startsWith("@")) return "name";
  const lower = word.toLowerCase();
  if (language === "sql" ? SQL.has(lower) || KEYWORDS.has(lower) : KEYWORDS.has(word)) return "keyword";
  if (CONSTANTS.has(word)) return "constant";
  return isCalled ? "name" : "";
}

/**
 * The text in pieces with the colours of a language.
 *
 * @param {string} text
 * @param {string} language
 */
export function highlighted(text, language) {
  if (PLAIN.has(language) || text.length > LONGEST) return [text];
  const pieces = [];
  let end = 0;
  for (const found of text.matchAll(tokens(language))) {
    const [whole, comment, quoted, number, word, call] = found;
    const kind = comment ? "comment" : quoted ? "string" : number ? "number" : kindOf(word, language, Boolean(call));
    if (!kind) continue;
    pieces.push(text.slice(end, found.index), el("span", `code-${kind}`, whole));
    end = found.index + whole.length;
  }
  return [...pieces, text.slice(end)];
}

/**
 * The languages of the fenced blocks of markdown, in order.
 *
 * @param {string} source
 */
export function languagesOf(source) {
  const languages = [];
  let fence = "";
  for (const line of source.split("\n")) {
    const [, marks = "", info = ""] = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)/.exec(line) ?? [];
    if (!fence && marks) languages.push(info.toLowerCase());
    if (!fence && marks) fence = marks;
    else if (fence && marks.startsWith(fence) && !info) fence = "";
  }
  return languages;
}

/**
 * Give the blocks below a node their colours and their buttons; `isOver` is false while their text grows.
 *
 * @param {HTMLElement} node
 * @param {string} source
 * @param {boolean} isOver
 */
export function dressCode(node, source, isOver) {
  const blocks = /** @type {HTMLElement[]} */ ([...node.querySelectorAll("pre:not(.adknb-shown-code)")]);
  if (!blocks.length) return;
  const languages = languagesOf(source);
  for (const [at, block] of blocks.entries()) {
    const { textContent: text, parentElement: parent } = block;
    if (!parent || parent.classList.contains("adknb-code")) continue;
    const language = languages[at] ?? "";
    const isWhole = isOver || at < blocks.length - 1;
    (block.querySelector("code") ?? block).replaceChildren(...highlighted(text, language));
    const name = PLAIN.has(language) ? "code" : language;
    const copy = isWhole ? copyButton("Copy", () => text.replace(/\n$/, "")) : null;
    copy?.setAttribute("aria-label", `Copy ${name}`);
    const box = el("div", "code");
    block.tabIndex = 0; // a long line is scrolled
    setAttribute(block, "role", "group");
    setLabel(block, name);
    block.replaceWith(box);
    box.append(el("div", "code-head", el("span", "", PLAIN.has(language) ? "" : language), copy), block);
  }
}
