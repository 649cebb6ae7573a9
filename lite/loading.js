// A line at the foot of the lab while Python is loaded, and a sentence where the browser lacks what cells need.
"use strict";

{
  const CANNOT_WAIT =
    "This browser cannot wait for a result in a cell, as it has no JavaScript Promise Integration. " +
    "Open this page in Chrome or Edge 137 or newer, or write: reply = await chat.aask(...)";
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
  addEventListener("DOMContentLoaded", () => {
    document.head.append(style);
    document.body.append(line);
    show("Loading the notebook …");
  });
}
