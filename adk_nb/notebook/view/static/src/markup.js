// Markup that Python rendered, sanitized again. All other content is inserted as text.

import { highlighted } from "./chat/code.js";
import { el, put, setAttribute } from "./elements.js";

/** @import { Piece, Row } from "./types" */

// Elements that Python's renderer makes; other elements are replaced by their content.
const TAGS = new Set(
  (
    "A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP " +
    "TABLE TBODY TD TH THEAD TR UL"
  ).split(" "),
);
const DROPPED = new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" "));
const LINK = /^(https?:|mailto:|#)/i;

const FOLDS = new Set([...TAGS, "DETAILS", "MARK", "SECTION", "SMALL", "SUMMARY"]);

/**
 * Markup with frames and folds, whose styles are those of elements.py.
 *
 * @param {string} html
 */
export const folds = (html) => safeMarkup(html, FOLDS, ["open", "style"]);

/**
 * @param {string} html
 * @param {Set<string>} [tags]
 * @param {string[]} [more] Attributes that stay, too.
 */
export function safeMarkup(html, tags = TAGS, more = []) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const node of [...template.content.querySelectorAll("*")]) {
    const tag = node.tagName.toUpperCase();
    if (DROPPED.has(tag)) {
      node.remove();
      continue;
    }
    const href = tag === "A" ? node.getAttribute("href") : null;
    const isRight = (tag === "TD" || tag === "TH") && node.getAttribute("style") === "text-align: right";
    for (const { name } of [...node.attributes]) {
      if (!["start", "title", "align", ...more].includes(name)) node.removeAttribute(name);
    }
    if (isRight) node.classList.add("adknb-number");
    if (href && LINK.test(href.trim())) {
      setAttribute(node, "href", href.trim());
      setAttribute(node, "target", "_blank");
      setAttribute(node, "rel", "noopener noreferrer nofollow");
    }
    if (!tags.has(tag)) node.replaceWith(...node.childNodes);
  }
  for (const table of template.content.querySelectorAll("table")) {
    const scroller = el("div", "wide");
    table.replaceWith(scroller);
    scroller.append(table);
  }
  return template.content;
}

/** @param {Row} row */
export const isMarkup = (row) => row.html !== null && row.html !== undefined;

/**
 * Text that Python rendered as html.
 *
 * @param {string} html
 * @param {any} manager
 */
export function markup(html, manager) {
  const node = el("div", "html", safeMarkup(html));
  drawFormulas(node, manager);
  return node;
}

/**
 * Let the page draw TeX, if it can. Python writes delimiters only around TeX that may be drawn: see mathematics.py.
 *
 * @param {HTMLElement} node
 * @param {any} manager
 */
export function drawFormulas(node, manager) {
  if (!/\\[([]/.test(node.textContent)) return;
  (manager?.rendermime ?? manager?._rendermime)?.latexTypesetter?.typeset(node);
}

// Streaming text: complete blocks stay as drawn, only the open end is redrawn.
export class Growing {
  /** @param {any} manager */
  constructor(manager) {
    this.manager = manager;
    this.length = 0;
    this.tail = el("div", "html");
    this.caret = el("span", "caret", "▌");
    this.complete = el("div", "html");
    this.node = el("div", "growing", this.complete, this.tail);
  }

  /** @param {Pick<Row, "html" | "tail">} text */
  paint({ html, tail }) {
    if (html !== null && html.length > this.length) {
      const added = document.createElement("div");
      added.append(safeMarkup(html.slice(this.length)));
      this.complete.append(...added.childNodes);
      drawFormulas(this.complete, this.manager);
      this.length = html.length;
    }
    put(this.tail, safeMarkup(tail));
    drawFormulas(this.tail, this.manager);
    /** @type {Element} */
    let last = this.tail;
    while (last.lastElementChild?.matches("p, ul, ol, li, blockquote, pre, h4, h5, h6, pre > code"))
      last = last.lastElementChild;
    last.append(this.caret);
  }
}

/**
 * An untrusted page, prepared by isolated_page.py, in a frame without scripts and with an opaque origin.
 *
 * @param {string} page
 * @param {string} [title]
 */
export function isolated(page, title = "Search suggestions") {
  const frame = el("iframe", "page");
  frame.sandbox = "allow-popups allow-popups-to-escape-sandbox";
  frame.referrerPolicy = "no-referrer";
  frame.title = title;
  frame.srcdoc = page;
  return frame;
}

/**
 * @param {string} source
 * @param {string | undefined} alt
 */
export function picture(source, alt) {
  if (!/^data:image\//.test(source)) return null; // a URL would be loaded
  const node = el("img", "image");
  node.src = source;
  node.alt = alt ?? "";
  return node;
}

/**
 * Images, tables and pages from a tool or a model: see results.py.
 *
 * @param {Piece[] | null | undefined} pieces
 */
export function resultPieces(pieces) {
  if (!pieces?.length) return null;
  return el("div", "looked-at", ...pieces.map(pieceOf));
}

/** @param {Piece} piece */
function pieceOf({ kind, src, alt, html, note, page, title, text, language }) {
  if (kind === "image") return picture(src, alt);
  if (kind === "code") return el("pre", "shown-code", ...highlighted(text, language ?? ""));
  if (kind === "table") return el("div", "html", safeMarkup(html), note ? el("div", "dim", note) : null);
  return kind === "page" ? isolated(page, title) : el("div", "dim", text);
}
