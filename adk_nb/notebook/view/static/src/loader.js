// The module of each view. It loads the view's code once for a page, from a model that all views of a kernel share.

/** @import { Model } from "./types" */

const PAGE = Symbol.for("adk_nb.view"); // on the window: version -> its module
const MAX_TRIES = 100; // times 50 ms: on a reloaded page, the model of the code may arrive after the view

/**
 * @param {any} manager
 * @param {string} id
 */
async function codeOf(manager, id) {
  for (let tries = 0; manager.has_model?.(id) === false && tries < MAX_TRIES; tries += 1) {
    await new Promise((done) => {
      setTimeout(done, 50);
    });
  }
  return manager.get_model(id);
}

/** @param {string} css */
function style(css) {
  const node = document.getElementById("adknb-style") ?? document.head.appendChild(document.createElement("style"));
  node.id = "adknb-style";
  node.textContent = css;
}

/**
 * @param {string} js
 * @param {string} css
 */
async function load(js, css) {
  style(css);
  const url = URL.createObjectURL(new Blob([js], { type: "text/javascript" }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

export default () => {
  /** @type {any} */
  let run;
  return {
    /** @param {{model: Model}} page */
    async initialize({ model }) {
      /** @type {object[]} Messages from Python while the code is loaded. */
      const early = [];
      const keep = (/** @type {object} */ message) => void early.push(message);
      model.on("msg:custom", keep);
      const code = await codeOf(model.widget_manager, model.get("code"));
      const version = code.get("version");
      /** @type {any} */
      const page = window;
      page[PAGE] ??= {};
      page[PAGE][version] ??= load(code.get("js"), code.get("css"));
      const module = await page[PAGE][version];
      model.off("msg:custom", keep);
      run = module.open(model, early);
    },
    /** @param {{el: HTMLElement}} place */
    render({ el }) {
      return run.show(el);
    },
  };
};
