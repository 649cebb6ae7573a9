// The field of a conversation. Text that cannot be sent yet stays in it.

import { button, el, newId, setAttribute } from "../elements.js";
import { Attach } from "./attach.js";

/** @import { Host, Talk } from "./types" */

export class Composer {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.reason = "";
    this.input = el("textarea", "input say");
    this.input.rows = 1;
    this.input.id = newId();
    this.label = el("label", "hidden");
    this.label.htmlFor = this.input.id;
    this.hint = el("div", "dim hint-line");
    this.hint.id = `${this.input.id}-hint`;
    setAttribute(this.input, "aria-describedby", this.hint.id);
    this.input.addEventListener("input", () => this.#paintSend());
    this.attach = new Attach(host, () => this.input.focus());
    this.send = button("Send", "go send", () => this.submit());
    this.stop = button("Stop", "stop", () => {
      host.emit({ kind: "stop" });
      this.input.focus();
    });
    const row = el("div", "composer-row", this.attach.button, this.hint, this.stop, this.send);
    const field = el("div", "composer-field", this.attach.chips, this.attach.note, this.label, this.input, row);
    this.node = el("div", "composer", this.attach.panel, field);
    field.addEventListener("mousedown", (event) => {
      if (event.target !== field) return;
      event.preventDefault();
      this.input.focus();
    });
    this.input.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** @param {Talk} talk */
  paint(talk) {
    this.reason = talk.reason;
    this.label.textContent = `Message to ${talk.agent}`;
    this.input.placeholder = talk.answers ? "Your answer" : `Message ${talk.agent}`;
    this.input.disabled = talk.gone;
    this.hint.textContent =
      talk.reason || `Enter sends${talk.answers ? " your answer" : ""}, Shift+Enter makes a new line.`;
    this.hint.toggleAttribute("data-reason", Boolean(talk.reason));
    this.attach.paint(talk);
    this.stop.hidden = !talk.running;
    this.stop.disabled = talk.stopping;
    this.stop.textContent = talk.stopping ? "Stopping…" : "Stop";
    this.send.hidden = talk.running && Boolean(talk.reason);
    this.#paintSend();
  }

  #paintSend() {
    this.send.disabled = Boolean(this.reason) || !this.input.value.trim();
  }

  // Send the text, with the files that are still read if all of them fit.
  submit() {
    if (this.attach.reading) {
      void this.attach.reading.then(() => {
        if (!this.attach.note.textContent) this.submit();
      });
      return;
    }
    const text = this.input.value;
    if (!text.trim() || this.reason) return;
    if (!this.host.emit({ kind: "send", text, attach: this.attach.items })) return;
    this.attach.clear();
    this.input.value = "";
    this.#paintSend();
    this.input.focus();
  }

  /**
   * Put a text into the field; its first `…` is selected, for what is to be typed.
   *
   * @param {string} text
   */
  fill(text) {
    this.input.value = text;
    this.#paintSend();
    this.input.focus();
    const gap = text.indexOf("…");
    this.input.setSelectionRange(gap < 0 ? text.length : gap, gap < 0 ? text.length : gap + 1);
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.submit();
  }
}
