/**
 * The cells of a notebook for the agents of its kernel: read, added and changed as
 * `adk_nb/notebook/extensions/notebook_tools/pages.py` asks.
 *
 * An agent gives text and its own name, never outputs or trust: a page runs the scripts of an output that it trusts.
 */

/** @typedef {import("./lab.js").AgentRequest} AgentRequest */
/** @typedef {import("./lab.js").Cell} Cell */
/** @typedef {import("./lab.js").NotebookModel} NotebookModel */
/** @typedef {import("./lab.js").Output} Output */

/** Of one output, in characters: its beginning and its end. */
const OUTPUT = [1400, 500];
/** Edits whose repetition is recognized. */
const MOST_KNOWN = 200;
const WIDGET = "application/vnd.jupyter.widget-view+json";
const COLORS = /\x1b\[[0-9;]*[A-Za-z]/g;

export class AgentCells {
  /** @param {NotebookModel} model */
  constructor(model) {
    this._model = model;
    /** A page that was loaded again is another one: what was asked of the earlier one is not done twice. */
    this.page = crypto.randomUUID();
    /** @type {string[]} Ids of requests for an edit. A server repeats messages to a page whose connection was cut. */
    this._known = [];
  }

  /**
   * @param {AgentRequest} request
   * @returns {object | null} Null: it is not for this page, or was answered before.
   */
  answer(request) {
    if (request.to !== this.page) return null;
    if (request.ask === "read") return { cells: this._cells.map((cell, index) => described(cell, index)) };
    if (this._known.includes(request.id)) return null;
    this._known = [...this._known, request.id].slice(-MOST_KNOWN);
    if (this._model.readOnly) return { problem: "the notebook is read-only on the page" };
    return request.ask === "insert" ? this._insert(request) : this._change(request);
  }

  get _cells() {
    const { cells } = this._model;
    return Array.from({ length: cells.length }, (_, index) => cells.get(index));
  }

  /** @param {AgentRequest} request */
  _insert({ below, running, source, by }) {
    const cells = this._cells;
    const above = cells.findIndex(({ id }) => id === (below || running));
    if (below && above < 0) return { problem: "the cell above is not in the notebook any more; read the cells again" };
    const index = above < 0 ? cells.length : above + 1;
    const { sharedModel } = this._model;
    const cell = { cell_type: "code", source, metadata: { adk_nb: { written_by: by } } };
    alone(sharedModel.undoManager, () => sharedModel.insertCell(index, cell));
    return { cell: described(this._model.cells.get(index), index) };
  }

  /** @param {AgentRequest} request */
  _change({ cell: id, was, source, by }) {
    const index = this._cells.findIndex((cell) => cell.id === id);
    if (index < 0) return { problem: "the cell is not in the notebook any more; read the cells again" };
    const cell = this._model.cells.get(index);
    const shared = cell.sharedModel;
    if (shared.getSource() !== was) return { problem: "the cell was changed meanwhile; read it again" };
    if (!isEditable(cell)) return { problem: "the cell is protected: its metadata has editable: false" };
    const mark = { ...shared.getMetadata("adk_nb"), changed_by: by };
    const { from, to, text } = patch(was, source);
    alone(shared.undoManager ?? this._model.sharedModel.undoManager, () =>
      shared.transact(() => {
        shared.updateSource(from, to, text);
        shared.setMetadata("adk_nb", mark);
      }),
    );
    return { cell: described(cell, index) };
  }
}

/**
 * Make one step that a reader takes back alone: without this, what was typed just before or after goes with it.
 * @param {{stopCapturing(): void} | null} undoManager
 * @param {() => void} edit
 */
function alone(undoManager, edit) {
  undoManager?.stopCapturing();
  edit();
  undoManager?.stopCapturing();
}

/** @param {Cell} cell */
const isEditable = (cell) => cell.sharedModel.getMetadata("editable") !== false;

/** @param {Cell} cell @param {number} index */
function described(cell, index) {
  return {
    number: index + 1,
    id: cell.id,
    kind: cell.type,
    count: cell.executionCount ?? null,
    source: cell.sharedModel.getSource(),
    editable: isEditable(cell),
    ...told(cell.outputs?.toJSON() ?? []),
  };
}

/**
 * What outputs say, as short text: errors apart.
 * @param {Output[]} outputs
 */
export function told(outputs) {
  const texts = outputs.filter(({ output_type }) => output_type !== "error").map(outputText);
  const errors = outputs.filter(({ output_type }) => output_type === "error").map(errorText);
  return { output: short(texts.filter(Boolean).join("\n"), OUTPUT), error: short(errors.join("\n"), OUTPUT) };
}

/** @param {Output} output */
function outputText({ text, data }) {
  if (text !== undefined) return plain(text);
  const bundle = data ?? {};
  const said = plain(bundle["text/plain"] ?? "") || plain(bundle["text/markdown"] ?? "");
  // A figure has a text that says nothing, as <Figure size 640x480 with 1 Axes>.
  const pictures = Object.keys(bundle).filter((type) => type.startsWith("image/"));
  const others = said ? [] : Object.keys(bundle).filter((type) => !/^text\/(plain|markdown)$/.test(type));
  const types = pictures.length > 0 ? pictures : others.filter((type) => type !== WIDGET && plain(bundle[type] ?? ""));
  return [said, ...types.map((type) => `[${type}]`)].filter(Boolean).join("\n");
}

/** @param {Output} output */
function errorText({ ename, evalue, traceback }) {
  return plain((traceback ?? []).join("\n")) || `${ename}: ${evalue}`;
}

/** Text without colours, and of a line that was written over only the last. @param {unknown} text */
function plain(text) {
  const whole = [text].flat().join("");
  return whole
    .replace(COLORS, "")
    .replace(/\r\n/g, "\n")
    .replace(/^.*\r(?=.)/gm, "")
    .trim();
}

/** @param {string} text @param {number[]} most */
function short(text, [beginning, end]) {
  if (text.length <= beginning + end) return text;
  return `${text.slice(0, beginning)}\n… ${text.length - beginning - end} characters …\n${text.slice(-end)}`;
}

/**
 * The smallest edit that makes `after` of `before`, so that the cursor of whoever is in the cell stays.
 * @param {string} before
 * @param {string} after
 */
export function patch(before, after) {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) from++;
  if (isHalf(before, from) || isHalf(after, from)) from--;
  let end = 0;
  while (end < most - from && before.at(-1 - end) === after.at(-1 - end)) end++;
  if (isHalf(before, before.length - end) || isHalf(after, after.length - end)) end--;
  return { from, to: before.length - end, text: after.slice(from, after.length - end) };
}

/** Whether a place in a text is within a character of two units. @param {string} text @param {number} place */
function isHalf(text, place) {
  return place > 0 && place < text.length && (text.codePointAt(place - 1) ?? 0) > 0xffff;
}
