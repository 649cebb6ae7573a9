// The times of agents, models and tools, as bars on one axis and as a table.

import { el, put, setAttribute, setLabel, shapeOf } from "../elements.js";
import { registerPanel } from "../panels.js";
import { duration } from "../words.js";

/** @import { Bar } from "../types" */
/** @import { View } from "../view.js" */

const MOST_BARS = 400;
const BAR_HEIGHT = 22;
/** @type {Record<string, [string, string]>} */
const KINDS = { agent: ["▸", "agent"], model: ["◆", "model"], tool: ["⚙", "tool"], person: ["⚠", "person"] };

class Waterfall {
  /**
   * @param {HTMLElement} root
   * @param {View} view
   */
  constructor(root, view) {
    this.root = root;
    this.view = view;
    /** @type {Bar[]} */
    this.data = [];
    /** @type {Bar[]} The drawn bars. */
    this.bars = [];
    this.picture = el("div", "bars");
    this.table = el("details", "twin-table", el("summary", "", "As a table"));
    this.table.addEventListener("toggle", () => this.paintTable());
    root.append(this.picture, this.table);
    this.drawn = "";
    new ResizeObserver(() => this.paint(this.data)).observe(root);
  }

  /** @param {Bar[]} [bars] */
  paint(bars = []) {
    this.data = bars;
    const width = this.root.clientWidth - 24;
    const drawn = `${width} ${JSON.stringify(bars)}`;
    if (this.root.hidden || width <= 0 || drawn === this.drawn) return;
    this.drawn = drawn;
    this.bars = bars.slice(-MOST_BARS);
    const omitted = bars.length > MOST_BARS ? el("div", "dim", `${bars.length - MOST_BARS} earlier bars`) : null;
    if (!bars.length) put(this.picture, el("div", "dim", "Nothing has been timed yet."));
    else put(this.picture, omitted, this.draw(this.bars, width));
    this.table.hidden = !bars.length;
    this.paintTable();
  }

  /**
   * @param {Bar[]} bars
   * @param {number} width
   */
  draw(bars, width) {
    const whole = Math.max(1, ...bars.map((bar) => Math.max(bar.begin, bar.end ?? 0)));
    const from = Math.min(...bars.map((bar) => bar.begin)) >= whole ? 0 : Math.min(...bars.map((bar) => bar.begin));
    const names = Math.min(230, Math.round(width * 0.34));
    const room = width - names - 62;
    /** @param {number} ms */
    const at = (ms) => names + ((ms - from) / (whole - from || 1)) * room;
    const height = bars.length * BAR_HEIGHT + 22;
    const root = shapeOf("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
    setLabel(root, `${bars.length} bars over ${duration(whole - from)}; the table below says the same`);
    /** @param {number} ms */
    const label = (ms) => (whole - from < 1000 ? duration(ms) : `${(ms / 1000).toFixed(1)} s`);
    for (const tick of ticks(from, whole, Math.max(2, Math.floor(room / 90)))) {
      root.append(shapeOf("path", { class: "adknb-grid", d: `M${at(tick)} 16V${height}` }));
      root.append(
        shapeOf("text", { class: "adknb-tick", x: at(tick), y: 11, "text-anchor": "middle" }, label(tick - from)),
      );
    }
    root.append(...bars.map((bar, number) => this.bar(bar, 20 + number * BAR_HEIGHT, at, whole, names, width)));
    return root;
  }

  /**
   * @param {Bar} bar
   * @param {number} top
   * @param {(ms: number) => number} at
   * @param {number} whole
   * @param {number} names
   * @param {number} width
   */
  bar(bar, top, at, whole, names, width) {
    const [left, right] = [at(bar.begin), Math.max(at(bar.end ?? whole), at(bar.begin) + 2)];
    const group = shapeOf("g", { class: "adknb-bar", "data-kind": bar.kind });
    if (bar.error) setAttribute(group, "data-mark", "failed");
    const indent = 4 + Math.min(bar.depth, 8) * 12;
    const chars = Math.floor((names - indent - 8) / 6.6);
    const name = `${bar.error ? "✗" : (KINDS[bar.kind]?.[0] ?? "")} ${bar.name}`;
    group.append(shapeOf("title", {}, barWords(bar)));
    group.append(shapeOf("rect", { class: "adknb-hit", x: 0, y: top, width, height: BAR_HEIGHT }));
    group.append(
      shapeOf(
        "text",
        { x: indent, y: top + 15 },
        name.length > chars ? `${name.slice(0, Math.max(1, chars - 1))}…` : name,
      ),
    );
    const high = bar.kind === "agent" ? 6 : 12;
    /**
     * @param {number} x
     * @param {number} end
     * @param {string} part
     */
    const shape = (x, end, part) =>
      shapeOf("rect", {
        class: `adknb-${part}`,
        x,
        y: top + (BAR_HEIGHT - high) / 2,
        width: Math.max(1, end - x),
        height: high,
        rx: 2,
      });
    const first = bar.first === null ? null : at(bar.first);
    if (first === null) group.append(shape(left, right, bar.kind === "model" ? "waits" : "work"));
    else group.append(shape(left, first, "waits"), shape(first, right, "work"));
    const taken = bar.end === null ? "…" : duration(bar.end - bar.begin);
    group.append(shapeOf("text", { class: "adknb-taken", x: right + 5, y: top + 15 }, taken));
    const { event } = bar;
    if (event) group.addEventListener("click", () => this.view.showEvent(event));
    return group;
  }

  paintTable() {
    if (!this.table.open) return;
    const head = el(
      "tr",
      "",
      ...["what", "name", "of", "begins", "first piece", "takes"].map((word) => el("th", "", word)),
    );
    const lines = this.bars.map((bar) =>
      el(
        "tr",
        "",
        ...[
          bar.error ? `${KINDS[bar.kind]?.[1]} ✗ ${bar.error}` : (KINDS[bar.kind]?.[1] ?? bar.kind),
          bar.name,
          bar.agent,
          duration(bar.begin) || "0",
          bar.first === null ? "" : duration(bar.first - bar.begin),
          bar.end === null ? endless(bar) : duration(bar.end - bar.begin),
        ].map((cell) => el("td", "", cell)),
      ),
    );
    this.table.querySelector("table")?.remove();
    this.table.append(el("table", "table", el("thead", "", head), el("tbody", "", ...lines)));
  }
}

/**
 * Round numbers between two, about as many as requested, and no closer than their labels can distinguish.
 *
 * @param {number} from
 * @param {number} to
 * @param {number} about
 */
function ticks(from, to, about) {
  /** @param {any} to - from */
  const rough = (to - from) / about;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const round = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= 0.8 * rough) ?? rough;
  const step = Math.max(round, to - from < 1000 ? 1 : 100);
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, at) => from + at * step);
}

/** @param {Bar} bar */
function endless(bar) {
  return bar.kind === "person" ? "still waits" : "still at work";
}

/** @param {Bar} bar */
function barWords(bar) {
  const taken = bar.end === null ? endless(bar) : `took ${duration(bar.end - bar.begin)}`;
  const first = bar.first === null ? "" : `, first piece after ${duration(bar.first - bar.begin)}`;
  const words = `${KINDS[bar.kind]?.[1] ?? bar.kind} ${bar.name}: began at ${duration(bar.begin) || "0 ms"}, ${taken}${first}`;
  return bar.error ? `${words}; ${bar.error}` : words;
}

registerPanel({ name: "waterfall", title: "Waterfall", mount: (root, view) => new Waterfall(root, view) });
