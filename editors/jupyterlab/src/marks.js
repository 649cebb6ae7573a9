/** Marks on what no language knows: placeholders in prose, and names that the kernel does or does not know. */

import { Prec, RangeSetBuilder, StateEffect } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin } from "@codemirror/view";
import { magicTokens } from "./cells.js";
import { cellField } from "./language.js";
import { edgeTokens, placeholders, teamTokens } from "./lines.js";

/** @typedef {import("./names.js").Names} Names */
/** @typedef {import("./cells.js").Token} Token */

/** The kernel has answered. */
const answered = /** @type {import("@codemirror/state").StateEffectType<null>} */ (StateEffect.define());

const TOKENS = { magic: magicTokens, edges: edgeTokens, team: teamTokens };
const NOTES = /** @type {Record<string, (name: string) => string>} */ ({
  agent: (name) => `this notebook has no agent ${name} yet`,
  node: (name) => `this notebook has no agent, tool or function ${name} yet`,
  state: (name) => `the session's state has no key ${name} yet`,
  tool: (name) => `this notebook has no tool ${name} yet`,
  variable: (name) => `this notebook has no variable ${name} yet`,
});

/**
 * @typedef {object} Mark
 * @property {number} from
 * @property {number} to
 * @property {string} type
 * @property {string} [names] The kind of the name.
 * @property {string} [name]
 * @property {string} [problem]
 */

/**
 * The marks on a part of a document.
 * @param {import("@codemirror/state").EditorState} state
 * @param {{from: number, to: number}} range
 * @returns {Mark[]} In order.
 */
export function marksIn(state, range) {
  const cell = state.field(cellField);
  return (cell?.sections ?? []).flatMap((section) => {
    const from = Math.max(section.from, state.doc.lineAt(Math.min(range.from, state.doc.length)).from);
    const to = Math.min(section.to, range.to);
    if (from >= to) return [];
    if (section.type === "prose" && cell?.braces) {
      return bracesIn(state.sliceDoc(from, to), from, cell.braces === "all");
    }
    const tokensOf = TOKENS[/** @type {keyof typeof TOKENS} */ (section.type)];
    if (!tokensOf) return [];
    return lines(state.sliceDoc(from, to), from).flatMap(([line, start]) => lineMarks(line, start, tokensOf(line)));
  });
}

/** @param {string} text @param {number} from @returns {[string, number][]} */
function lines(text, from) {
  let start = from;
  return text.split("\n").map((line) => {
    start += line.length + 1;
    return [line, start - line.length - 1];
  });
}

/** @param {string} line @param {number} start @param {Token[]} tokens @returns {Mark[]} */
function lineMarks(line, start, tokens) {
  const isRaw = /\s--raw(?!\S)/.test(line);
  return tokens.flatMap(({ from, to, type, names, problem }) => {
    const place = { from: start + from, to: start + to };
    if (type === "text") return isRaw ? [] : bracesIn(line.slice(from, to), place.from, false);
    if (problem) return [{ ...place, type, problem }];
    return names ? [{ ...place, type, names, name: line.slice(from, to) }] : [];
  });
}

/** @param {string} text @param {number} start @param {boolean} keys @returns {Mark[]} */
function bracesIn(text, start, keys) {
  return placeholders(text, { keys }).map(({ from, to, type, name, needed }) => ({
    from: start + from,
    to: start + to,
    type,
    ...(needed && { names: type, name }),
  }));
}

/**
 * How a mark is drawn, with what the kernel knows of its name; null: not at all.
 * @param {Mark} mark
 * @param {boolean | undefined} isKnown Undefined: the kernel has not said.
 */
function decoration({ type, names, name, problem }, isKnown) {
  const note = problem ?? (isKnown === false && type !== "address" && NOTES[names ?? ""]?.(name ?? ""));
  const classes = [
    type === "state" || type === "variable" ? `adknb-mark-${type}` : "",
    type === "address" && isKnown ? "adknb-mark-agent" : "",
    problem ? "adknb-mark-wrong" : note ? "adknb-mark-unknown" : "",
  ].filter(Boolean);
  if (classes.length === 0) return null;
  return Decoration.mark({ class: classes.join(" "), ...(note && { attributes: { title: note } }) });
}

const LOOKS = EditorView.baseTheme({
  ".adknb-mark-state, .adknb-mark-variable": {
    borderRadius: "3px",
    boxShadow: "0 0 0 1px color-mix(in srgb, currentColor 16%, transparent)",
    backgroundColor: "color-mix(in srgb, currentColor 8%, transparent)",
  },
  ".adknb-mark-state": { color: "var(--jp-mirror-editor-variable-3-color)" },
  ".adknb-mark-variable": { color: "var(--jp-mirror-editor-property-color)" },
  ".adknb-mark-agent": { color: "var(--jp-mirror-editor-def-color)" },
  ".adknb-mark-unknown": { textDecoration: "underline dotted var(--jp-warn-color1)", textUnderlineOffset: "3px" },
  ".adknb-mark-wrong": { textDecoration: "underline wavy var(--jp-error-color1)", textUnderlineOffset: "3px" },
});

/**
 * The extension of an editor that draws the marks.
 * @param {() => Names | null} namesOf What the kernel of the editor's notebook knows, if there is one.
 */
export function cellMarks(namesOf) {
  class Marks {
    /** @param {EditorView} view */
    constructor(view) {
      this.view = view;
      /** @type {Names | null} */
      this.names = null;
      /** @type {Mark[]} */
      this.marks = [];
      this.decorations = Decoration.none;
      this.draw();
    }

    /** @param {import("@codemirror/view").ViewUpdate} update */
    update(update) {
      const isAnswer = update.transactions.some((transaction) =>
        transaction.effects.some((effect) => effect.is(answered)),
      );
      if (update.docChanged || update.viewportChanged || isAnswer) this.draw();
    }

    draw() {
      const { state, visibleRanges } = this.view;
      this.marks = visibleRanges.flatMap((range) => marksIn(state, range));
      if (this.marks.some(({ name }) => name)) this.connect();
      const builder = /** @type {RangeSetBuilder<Decoration>} */ (new RangeSetBuilder());
      for (const mark of this.marks) {
        const drawn = decoration(mark, mark.name ? this.names?.isKnown(mark.names ?? "", mark.name) : undefined);
        if (drawn) builder.add(mark.from, mark.to, drawn);
      }
      this.decorations = builder.finish();
    }

    connect() {
      this.names ??= namesOf();
      this.names?.join(this);
    }

    /** The names that are in view: kind and name. */
    wanted() {
      return this.marks
        .filter(({ name }) => name)
        .map(({ names, name }) => /** @type {[string, string]} */ ([names, name]));
    }

    refresh() {
      this.view.dispatch({ effects: answered.of(null) });
    }

    destroy() {
      this.names?.leave(this);
    }
  }
  const plugin = ViewPlugin.fromClass(Marks, { decorations: (marks) => marks.decorations });
  return [LOOKS, Prec.highest(plugin)];
}
