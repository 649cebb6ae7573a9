// What the page of the lab adds: a line at its foot while Python is loaded, a sentence where the browser lacks what
// cells need, a Python for each notebook that is used and for no other, and room for the notebook on a narrow screen.
"use strict";

{
  const CANNOT_WAIT =
    "This browser cannot wait for a result in a cell, as it has no JavaScript Promise Integration. " +
    "Open this page in Chrome or Edge 137 or newer; or write, with the name of an agent of your notebook: " +
    "reply = await Chat(agent).aask(...)";
  const NARROW = matchMedia("(max-width: 760px)");
  const USES = /^(notebook|console|runmenu|kernelmenu|inspector|completer):.*(run|restart|invoke|inspect)/;
  const style = document.createElement("style");
  style.textContent = `
    #adk-nb-loading, #adk-nb-cannot-wait {
      position: fixed; z-index: 900; left: 50%; bottom: 36px; transform: translateX(-50%); max-width: min(44em, 90vw);
      padding: 6px 14px; border-radius: 6px; font: 13px/1.5 system-ui, sans-serif;
      color: var(--jp-ui-font-color1, #222); background: var(--jp-layout-color1, #fff);
      border: 1px solid var(--jp-border-color1, #bbb); box-shadow: 0 1px 6px rgb(0 0 0 / 20%);
    }
    #adk-nb-cannot-wait { bottom: 80px; border-color: var(--jp-warn-color1, #c77700); }
    #adk-nb-loading:empty { display: none; }
  `;
  const line = document.createElement("div");
  line.id = "adk-nb-loading";
  line.setAttribute("role", "status");
  const warning = document.createElement("div");
  warning.id = "adk-nb-cannot-wait";
  warning.setAttribute("role", "alert");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.onclick = () => warning.remove();
  warning.append(`${CANNOT_WAIT} `, close);

  const show = (text) => {
    line.textContent = text;
  };
  new BroadcastChannel("adk-nb-loading").onmessage = ({ data }) => {
    if (data.cannotWait) {
      document.body.append(warning);
    }
    if ("text" in data) {
      show(data.text);
    }
  };

  /* A Python takes 300 MB, and JupyterLite starts one for each notebook that is open. So each worker asks first
     (start.mjs), and is let begin when its notebook is the one that the page was opened on, or is run. */
  const asking = new Map(); // id of a kernel -> its worker
  const begun = new Set();
  const begin = (id) => {
    begun.add(id);
    asking.get(id)?.postMessage({ adkNb: "begin" });
    asking.delete(id);
  };
  globalThis.Worker = class extends Worker {
    constructor(address, options) {
      super(address, { ...options, name: "adk-nb-asks" });
      this.addEventListener("message", ({ data }) => {
        if (data?.adkNb) {
          asking.set(this.kernel, this);
          if (!this.kernel || begun.has(this.kernel)) {
            begin(this.kernel);
          }
        }
      });
    }

    /** JupyterLite's first words to a worker are the options of its kernel. */
    postMessage(data, ...rest) {
      this.kernel ??= data?.argumentList?.[0]?.value?.kernelId;
      super.postMessage(data, ...rest);
    }
  };

  /** Let the Python of a panel begin, now or when it has a kernel. */
  const use = (panel) => {
    const session = panel?.sessionContext;
    if (session?.session?.kernel) {
      begin(session.session.kernel.id);
    } else {
      session?.kernelChanged.connect(function started(_, { newValue }) {
        if (newValue) {
          session.kernelChanged.disconnect(started);
          begin(newValue.id);
        }
      });
    }
  };

  const arranged = async (app) => {
    const { shell, commands } = app;
    const asked = new URLSearchParams(location.search).get("path");
    await app.restored;
    const first = () => {
      const path = shell.currentWidget?.context?.path;
      if (path && (!asked || path === asked)) {
        shell.currentChanged.disconnect(first);
        use(shell.currentWidget);
      }
    };
    shell.currentChanged.connect(first);
    first();
    commands.commandExecuted.connect((_, { id }) => {
      if (USES.test(id)) {
        use(shell.currentWidget);
      }
    });
    const fit = async () => {
      for (const side of ["left", "right"]) {
        if (shell.isSideTabBarVisible(side) === NARROW.matches) {
          await commands.execute("application:toggle-side-tabbar", { side });
        }
      }
      if (NARROW.matches) {
        shell.collapseLeft();
        shell.collapseRight();
      } else {
        shell.expandLeft();
      }
    };
    NARROW.addEventListener("change", fit);
    if (!NARROW.matches) {
      return;
    }
    // The lab opens its list of files some time after it is there; a reader may, too.
    const folded = () => {
      if (NARROW.matches && !shell.leftCollapsed) {
        shell.collapseLeft();
      }
    };
    shell.layoutModified.connect(folded);
    for (const act of ["pointerdown", "keydown"]) {
      addEventListener(act, () => shell.layoutModified.disconnect(folded), { once: true, capture: true });
    }
    await fit();
  };

  addEventListener("DOMContentLoaded", () => {
    document.head.append(style);
    document.body.append(line);
    show("Loading the notebook …");
    const wait = setInterval(() => {
      if (globalThis.jupyterapp) {
        clearInterval(wait);
        arranged(globalThis.jupyterapp);
      }
    }, 50);
  });
}
