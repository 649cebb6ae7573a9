// The extension as a container of module federation, which the lab loads: https://webpack.js.org/concepts/module-federation
// The build puts the extension and the names of the lab's modules that it imports where the comments are. It carries
// none of them itself: an editor's extensions must share one copy of CodeMirror.

/** @typedef {{get(): Promise<() => unknown>, loaded?: unknown}} SharedModule */

(() => {
  /** @type {string[]} */
  const names = [/* the lab's modules */];
  const body = (/** @type {(name: string) => unknown} */ require, /** @type {{exports: object}} */ module) => {
    /* the extension */
    return [require, module];
  };

  /** @type {Record<string, Record<string, SharedModule>>} */
  let scope = {};

  const numbers = (/** @type {string} */ version) => version.split(/[.+-]/).map((part) => Number(part) || 0);
  const isOlder = (/** @type {string} */ a, /** @type {string} */ b) => {
    const [left, right] = [numbers(a), numbers(b)];
    const place = [0, 1, 2].find((index) => left[index] !== right[index]);
    return place !== undefined && left[place] < right[place];
  };

  /** The copy that the lab uses: the one that is loaded, else the newest. @param {string} name */
  const shared = async (name) => {
    const versions = scope[name] ?? {};
    const version = Object.keys(versions).reduce(
      (best, next) => (!best || (!versions[best].loaded && isOlder(best, next)) ? next : best),
      "",
    );
    if (!version) throw new Error(`adk-nb: this JupyterLab has no ${name}`);
    versions[version].loaded = 1;
    return /** @type {const} */ ([name, (await versions[version].get())()]);
  };

  const global = /** @type {{_JUPYTERLAB?: Record<string, object>}} */ (/** @type {unknown} */ (window));
  global._JUPYTERLAB ??= {};
  global._JUPYTERLAB["adk-nb"] = {
    /** @param {typeof scope} lab */
    init(lab) {
      scope = lab;
    },
    async get() {
      const modules = Object.fromEntries(await Promise.all(names.map(shared)));
      const module = { exports: {} };
      body((name) => modules[name], module);
      return () => module.exports;
    },
  };
})();
