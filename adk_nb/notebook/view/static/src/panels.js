// The panels of a run. Each registers itself; Python offers those with content, and only they have a tab.

import { el, put } from "./elements.js";

/** @import { Panel, PanelPart, PanelView, Op } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

/** @type {Map<string, Panel>} */
const registered = new Map();

/**
 * Register a panel. See docs/pages/python.md, "A panel of your own".
 *
 * @param {Panel} panel
 */
export function registerPanel(panel) {
  registered.set(panel.name, panel);
}

/**
 * A panel as `listed` by Python: one of this module, or the `module` that came with it.
 *
 * @param {{name: string, title: string, module?: string}} listed
 * @returns {Panel | null}
 */
export function panelOf({ name, title, module }) {
  if (!module) return registered.get(name) ?? null;
  return { name, title, mount: (root, view) => new LoadedPart(name, imported(module), root, view) };
}

/** @type {Map<string, Promise<any>>} Text of a module -> the module. */
const modules = new Map();

/** @param {string} module */
function imported(module) {
  const known = modules.get(module);
  if (known) return known;
  const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
  const loaded = import(url).finally(() => URL.revokeObjectURL(url));
  modules.set(module, loaded);
  return loaded;
}

/**
 * A panel from outside this package, whose module is loaded with the view.
 *
 * @implements {PanelPart}
 */
class LoadedPart {
  /**
   * @param {string} name
   * @param {Promise<any>} module
   * @param {HTMLElement} root
   * @param {View} view
   */
  constructor(name, module, root, view) {
    this.root = root;
    this.view = panelView(name, view);
    /** @type {Panel["render"]} */
    this.render = undefined;
    module.then(
      (loaded) => {
        this.render = loaded.default.render;
        view.repaint();
      },
      (error) => put(root, el("div", "problem", `This panel could not be loaded: ${error}`)),
    );
  }

  /** @param {any} data */
  paint(data) {
    if (data !== undefined) this.render?.(this.root, data, this.view);
  }
}

/**
 * The interface of the view for panels from outside.
 *
 * @param {string} name
 * @param {View} view
 * @returns {PanelView}
 */
function panelView(name, view) {
  const { store } = view;
  return {
    need: (id) =>
      new Promise((done) => {
        store.need(name, id, done);
      }),
    showEvent: (id) => view.showEvent(id),
    get status() {
      return store.status.status;
    },
  };
}

/** A panel in one view: its element, and its data from Python. */
export class MountedPanel {
  /**
   * @param {Panel} panel
   * @param {View} view
   */
  constructor(panel, view) {
    this.panel = panel;
    this.view = view;
    this.name = panel.name;
    this.title = panel.title;
    this.node = el("div", panel.look ?? `panel ${panel.name}`);
    this.node.tabIndex = 0;
    this.request = new PanelRequest(view.store, panel.asks ?? panel.name);
    this.part = panel.mount?.(this.node, view) ?? {
      paint: (data) => panel.render?.(this.node, data, panelView(panel.name, view)),
    };
  }

  get exists() {
    return this.panel.exists?.(this.view.store) ?? this.view.store.offers.includes(this.name);
  }

  get isOffered() {
    const { offers, gone } = this.view.store;
    return this.panel.asks !== null && !gone && offers.includes(this.name);
  }

  /** Request the data when the panel is opened, not before. */
  opened() {
    if (this.isOffered) this.request.now();
    this.part.opened?.();
  }

  /** @param {Op} op */
  touch(op) {
    if (this.isOffered && (this.panel.refresh ?? ["append", "patch", "status"]).includes(op.op)) this.request.soon();
    this.part.touch?.(op);
  }

  closed() {
    this.request.cancel();
    this.part.closed?.();
  }

  paint() {
    try {
      this.part.paint(this.request.data);
    } catch (error) {
      put(this.node, el("div", "problem", `This panel failed: ${error}`));
    }
  }
}

/** The request of a panel's data: at once when it is opened, then at most once a second while the run continues. */
class PanelRequest {
  /**
   * @param {Store} store
   * @param {string} what
   */
  constructor(store, what) {
    this.store = store;
    this.what = what;
    this.sent = 0;
    this.timer = 0;
  }

  get data() {
    return this.store.panels.get(this.what);
  }

  now() {
    this.cancel();
    this.sent = performance.now();
    this.store.send({ kind: "need", what: this.what });
  }

  soon() {
    this.timer ||= window.setTimeout(() => this.now(), Math.max(0, this.sent + 1000 - performance.now()));
  }

  cancel() {
    clearTimeout(this.timer);
    this.timer = 0;
  }
}
