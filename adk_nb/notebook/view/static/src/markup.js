// Markup that Python rendered, made safe once more. All else goes in as text.

import { el, put } from "./elements.js";

// Elements and attributes that the renderer of answers makes; anything else loses its tag, keeping its words.
const TAGS = new Set(
  (
    "A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP " +
    "TABLE TBODY TD TH THEAD TR UL"
  ).split(" "),
);
const DROPPED = new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" "));
const LINK = /^(https?:|mailto:|#)/i;

export function safeMarkup(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const node of [...template.content.querySelectorAll("*")]) {
    const tag = node.tagName.toUpperCase();
    if (DROPPED.has(tag)) {
      node.remove();
      continue;
    }
    const href = tag === "A" ? node.getAttribute("href") : null;
    for (const { name } of [...node.attributes]) {
      if (name !== "start" && name !== "title" && name !== "align") node.removeAttribute(name);
    }
    if (href && LINK.test(href.trim())) {
      node.setAttribute("href", href.trim());
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    }
    if (!TAGS.has(tag)) node.replaceWith(...node.childNodes);
  }
  for (const table of template.content.querySelectorAll("table")) {
    const scroller = el("div", "wide");
    table.replaceWith(scroller);
    scroller.append(table);
  }
  return template.content;
}

export const isMarkup = (row) => row.html !== null && row.html !== undefined;

// Words as Python rendered them.
export function markup(html, manager) {
  const node = el("div", "html", safeMarkup(html));
  drawFormulas(node, manager);
  return node;
}

// As the page itself draws TeX; where it draws none, one reads the source. What is not TeX that may be drawn has no
// delimiters in Python's markup: see safe_html.py.
function drawFormulas(node, manager) {
  if (!/\\[([]/.test(node.textContent)) return;
  (manager?.rendermime ?? manager?._rendermime)?.latexTypesetter?.typeset(node);
}

// Words that still come: what is complete stays as it is drawn, and only the open end is drawn anew.
export class Growing {
  constructor(manager) {
    this.manager = manager;
    this.length = 0;
    this.tail = el("div", "html");
    this.caret = el("span", "caret", "▌");
    this.complete = el("div", "html");
    this.node = el("div", "growing", this.complete, this.tail);
  }

  paint({ html, tail }) {
    if (html.length > this.length) {
      const added = document.createElement("div");
      added.append(safeMarkup(html.slice(this.length)));
      this.complete.append(...added.childNodes);
      drawFormulas(this.complete, this.manager);
      this.length = html.length;
    }
    put(this.tail, safeMarkup(tail));
    drawFormulas(this.tail, this.manager);
    let last = this.tail;
    while (last.lastElementChild?.matches("p, ul, ol, li, blockquote, pre, h4, h5, h6, pre > code"))
      last = last.lastElementChild;
    last.append(this.caret);
  }
}

// A page that somebody else wrote, as Python made it ready: it runs nothing, loads nothing, and is of no origin.
export function isolated(page, title = "Search suggestions") {
  const frame = el("iframe", "page");
  frame.sandbox = "allow-popups allow-popups-to-escape-sandbox";
  frame.referrerPolicy = "no-referrer";
  frame.title = title;
  frame.srcdoc = page;
  return frame;
}

export function picture(source, alt) {
  if (!/^data:image\//.test(source)) return null; // nothing is loaded from anywhere
  const node = el("img", "image");
  node.src = source;
  node.alt = alt ?? "";
  return node;
}

// What a tool or a model gave to look at: see rich_results.py.
export function lookedAt(pieces) {
  if (!pieces?.length) return null;
  const draw = {
    image: (one) => picture(one.src, one.alt),
    table: (one) => el("div", "html", safeMarkup(one.html), one.note ? el("div", "dim", one.note) : null),
    page: (one) => isolated(one.page, one.title),
    note: (one) => el("div", "dim", one.text),
  };
  return el("div", "looked-at", ...pieces.map((one) => draw[one.kind]?.(one)));
}
