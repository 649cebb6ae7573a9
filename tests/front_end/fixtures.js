// A model as anywidget hands it on, whose page and kernel are the test; and a run to begin with.

/** @import { Op, Row, Snapshot } from "../../adk_nb/notebook/view/static/src/types" */

/**
 * @param {Partial<Snapshot>} fields
 * @returns {Snapshot}
 */
export function snapshot(fields = {}) {
  return {
    seq: 0,
    title: "demo",
    own_id: "v",
    box: null,
    status: { status: "idle", text: "" },
    notice: "",
    notices: [],
    usage: { text: "" },
    earlier: 0,
    state: [],
    rows: [],
    cards: [],
    drawing: null,
    marks: {},
    lanes: [],
    artifacts: [],
    offers: [],
    answer: null,
    ...fields,
  };
}

/**
 * @param {string} id
 * @param {Partial<Row>} fields
 * @returns {Op}
 */
export function append(id, fields = {}) {
  return { op: "append", row: { id, author: "a", kind: "text", lane: "", text: "", html: null, tail: "", ...fields } };
}

export class FakeModel {
  /** @param {Partial<Snapshot>} fields */
  constructor(fields = {}) {
    /** @type {Record<string, any>} */
    this.traits = { snapshot: snapshot(fields), panels: [] };
    /** @type {any[]} */
    this.sent = [];
    /** @type {Map<string, (message: any) => void>} */
    this.listeners = new Map();
    this.widget_manager = {};
    this.isGone = false;
  }

  /** @param {string} name */
  get(name) {
    return this.traits[name];
  }

  /**
   * @param {string} event
   * @param {(message: any) => void} listener
   */
  on(event, listener) {
    this.listeners.set(event, listener);
  }

  /** @param {string} event */
  off(event) {
    this.listeners.delete(event);
  }

  /** @param {object} message */
  send(message) {
    if (this.isGone) throw new Error("no comm");
    this.sent.push(message);
  }

  /**
   * What Python sends: a batch of ops.
   *
   * @param {number} seq
   * @param {Op[]} ops
   */
  hear(seq, ...ops) {
    this.listeners.get("msg:custom")?.({ kind: "ops", seq, ops });
  }

  /** @param {Partial<Snapshot>} fields */
  hearSnapshot(fields) {
    this.traits.snapshot = snapshot(fields);
    this.listeners.get("change:snapshot")?.(undefined);
  }
}
