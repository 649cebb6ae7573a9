// What the other parts are made of: elements, safe markup, drawings. Only row.html is markup; all else goes in as text.

const MAX_ROWS = 1000;
const FOLD_ABOVE = 480; // pixels; what is cut shows 420 of them (.adknb-clip), so that a fold saves some lines
const STATUS = {
  idle: ["○", "idle"],
  running: ["●", "running"],
  pending: ["⚠", "waiting"],
  done: ["✓", "done"],
  error: ["✗", "error"],
  cancelled: ["■", "stopped"],
};
const ANSWERED = {
  approved: ["✓", "approved"],
  edited: ["✎", "approved with changes"],
  rejected: ["✗", "rejected"],
  answered: ["✓", "You answered"],
  reasked: ["↻", "asked anew"],
  given: ["✓", "answered"],
  refused: ["✗", "refused"],
  superseded: ["–", "no longer asked"],
  retried: ["↻", "said again"],
  dropped: ["✓", "taken back"],
  over: ["–", "the conversation went on"],
  stale: ["–", "stale"],
};
// How those that work stand, in a line and in a drawing.
const STANDS = {
  now: ["●", "works"],
  waits: ["⚠", "waits"],
  was: ["✓", "done"],
  failed: ["✗", "failed"],
  stopped: ["■", "stopped"],
};
const GONE = "What waits in a session that is kept in a file is asked again by %confirm; else run the cell again.";
const MARKS = { "+": "added", "~": "changed", "-": "removed" };

// Elements and attributes that the renderer of answers makes; anything else loses its tag, keeping its words.
const TAGS = new Set(
  ("A B BLOCKQUOTE BR CODE DEL EM H1 H2 H3 H4 H5 H6 HR I LI OL P PRE S SPAN STRONG SUB SUP " +
    "TABLE TBODY TD TH THEAD TR UL").split(" "),
);
const DROPPED = new Set("SCRIPT STYLE IFRAME OBJECT EMBED TEMPLATE SVG MATH NOSCRIPT".split(" "));
const LINK = /^(https?:|mailto:|#)/i;

// Each view has a module of its own: a count alone would give the elements of two views the same ids.
const mine = `adknb-${Math.random().toString(36).slice(2)}`;
let ids = 0;

function el(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name.split(" ").map((part) => `adknb-${part}`).join(" ");
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function button(label, name, onClick) {
  const node = el("button", `button ${name}`, label);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

function put(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function safeMarkup(html) {
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

const isMarkup = (row) => row.html !== null && row.html !== undefined;

// Words as Python rendered them.
function markup(html, manager) {
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
class Growing {
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
    while (last.lastElementChild?.matches("p, ul, ol, li, blockquote, pre, h4, h5, h6, pre > code")) last = last.lastElementChild;
    last.append(this.caret);
  }
}

// Content that is cut at a height, with a button for the rest; what is short has none.
function foldable(...content) {
  const inner = el("div", "", ...content);
  const clip = el("div", "clip", inner);
  const more = button("Show all", "small show-all", () => {
    open = !open;
    paint();
    if (!open) clip.scrollIntoView({ block: "nearest" });
  });
  let open = false;
  const paint = () => {
    const long = inner.offsetHeight > FOLD_ABOVE;
    clip.toggleAttribute("data-cut", long && !open);
    more.hidden = !long;
    more.textContent = open ? "Show less" : "Show all";
    more.setAttribute("aria-expanded", String(open));
  };
  more.hidden = true;
  more.addEventListener("keydown", (event) => event.stopPropagation()); // Enter is the button's, not the notebook's
  new ResizeObserver(paint).observe(inner);
  return el("div", "", clip, more);
}

// A page that somebody else wrote, as Python made it ready: it runs nothing, loads nothing, and is of no origin.
function isolated(page, title = "Search suggestions") {
  const frame = el("iframe", "page");
  frame.sandbox = "allow-popups allow-popups-to-escape-sandbox";
  frame.referrerPolicy = "no-referrer";
  frame.title = title;
  frame.srcdoc = page;
  return frame;
}

function picture(source, alt) {
  if (!/^data:image\//.test(source)) return null; // nothing is loaded from anywhere
  const node = el("img", "image");
  node.src = source;
  node.alt = alt ?? "";
  return node;
}

// What a tool or a model gave to look at: see rich_results.py.
function lookedAt(pieces) {
  if (!pieces?.length) return null;
  const draw = {
    image: (one) => picture(one.src, one.alt),
    table: (one) => el("div", "html", safeMarkup(one.html), one.note ? el("div", "dim", one.note) : null),
    page: (one) => isolated(one.page, one.title),
    note: (one) => el("div", "dim", one.text),
  };
  return el("div", "looked-at", ...pieces.map((one) => draw[one.kind]?.(one)));
}

const SHAPES = new Set(["rect", "path", "text"]);
const PLACED = new Set(
  ("x y width height rx d fill fill-opacity stroke stroke-opacity stroke-dasharray text-anchor font-size " +
    "font-weight").split(" "),
);

function svg({ width, height, shapes }) {
  const node = (tag, at) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(at)) made.setAttribute(name, value);
    return made;
  };
  const root = node("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  root.style.minWidth = `${Math.round(width * 0.65)}px`; // then it is scrolled
  for (const { tag, at, text, key } of shapes) {
    if (!SHAPES.has(tag)) continue;
    const shape = node(tag, Object.fromEntries(Object.entries(at).filter(([name]) => PLACED.has(name))));
    shape.dataset.key = key;
    shape.textContent = text;
    root.append(shape);
  }
  return root;
}

function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function shown(value) {
  return value === null || value === undefined ? "nothing" : withEscapes(JSON.stringify(value));
}

const inAscii = (text) => text.replace(/[^ -~]/g, escaped); // a Cyrillic letter may look like a Latin one
const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

// The twin of plain_text.with_escapes: what cannot be seen, as \u202e; tabs, line ends and emoji stay.
const UNSEEN =
  /(\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{Extended_Pictographic}[\ufe0e\ufe0f]?\p{EMod}?)*)|[^\P{C}\t\n]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|\u2800/gu;

function withEscapes(text) {
  return text.replace(UNSEEN, (found, emoji) => emoji ?? found.split("").map(escaped).join(""));
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
