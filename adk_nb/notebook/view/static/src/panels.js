// The panels over a run: each registers itself, Python says which of them a view has, and what has nothing to show has no tab.

import { el, put } from "./elements.js";

/** @import { Panel, PanelPart, PanelView, Op } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

/** @type {Map<string, Panel>} */
const registered = new Map();

/**
 * Make a panel known under its name. See docs: panels of one's own.
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
 * A panel from outside this package: its module is loaded when it is first looked at.
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
 * The view as a panel from outside sees it.
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

/** A panel in one view: its place on the page, and the data that Python gave for it. */
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

  /** What is asked of Python is asked when a panel is looked at, not before. */
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

/** What a panel asks Python for: at once when it is opened, and again, at most once a second, while the run goes on. */
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
    this.store.say({ kind: "need", what: this.what });
  }

  soon() {
    this.timer ||= window.setTimeout(() => this.now(), Math.max(0, this.sent + 1000 - performance.now()));
  }

  cancel() {
    clearTimeout(this.timer);
    this.timer = 0;
  }
}
