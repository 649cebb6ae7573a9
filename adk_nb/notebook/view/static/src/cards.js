// The cards: requests to the user, below the events, and their outcomes.

import { AlikeTable, approveLabel, decidedCalls, decidedSubject } from "./alike_calls.js";
import { AnswerForm } from "./answer_form.js";
import { ApproveAll } from "./approve_all.js";
import { asks, asksNothing, consentLink, documentPart, isDecided, NOTICES } from "./card_parts.js";
import { button, buttonRow, el, newId, put, setAttribute } from "./elements.js";
import { argumentList } from "./error_cards.js";
import { Steady } from "./steady.js";
import { ANSWERED } from "./words.js";

/** @import { Card, Child } from "./types" */
/** @import { View } from "./view.js" */
/** @import { Store } from "./store.js" */

export class Cards {
  /**
   * @param {Store} store
   * @param {View} view
   */
  constructor(store, view) {
    this.store = store;
    this.view = view;
    /** @type {Map<string, {node: HTMLElement, drawn: string}>} */
    this.nodes = new Map();
    /** @type {Map<string, AnswerForm>} Open forms, kept so that a refused answer can be corrected. */
    this.forms = new Map();
    /** @type {Map<string, AlikeTable>} Tables of calls, kept with their ticks. */
    this.tables = new Map();
    this.steady = new Steady();
    this.all = new ApproveAll(view);
    this.steady.guard(this.all.node);
    this.node = el("div", "cards");
    this.answered = el("div", "cards decisions"); // above the answer
  }

  paint() {
    for (const [id, { node }] of this.nodes) {
      if (this.store.cards.has(id)) continue;
      node.remove();
      this.nodes.delete(id);
      this.forms.delete(id);
      this.tables.delete(id);
    }
    for (const card of this.store.cards.values()) this.#paintCard(card);
    /** @type {Map<string, HTMLElement>} */
    const open = new Map();
    for (const [id, { node }] of this.nodes) {
      const card = this.store.cards.get(id);
      if (card && this.store.isOpen(card)) open.set(id, node);
    }
    this.all.paint(open, this.node);
    this.steady.watch(open);
  }

  /** @param {Card} card */
  #paintCard(card) {
    const drawn = JSON.stringify([card, this.store.isOpen(card), this.isNext(card)]);
    const known = this.nodes.get(card.id);
    if (known?.drawn === drawn) return;
    const focused = known ? this.#focusedIn(known.node) : null;
    const node = this.card(card);
    const place = isDecided(card) && !this.store.box ? this.answered : this.node;
    if (known?.node.parentNode === place) known.node.replaceWith(node);
    else {
      known?.node.remove();
      place.append(node);
    }
    this.nodes.set(card.id, { node, drawn });
    if (focused) this.#refocus(card, node, focused);
  }

  /**
   * What has the focus in a card, or will have it when its button is on.
   *
   * @param {HTMLElement} node
   */
  #focusedIn(node) {
    const active = document.activeElement;
    const off = active === document.body || active === node ? this.steady.focused : null;
    return [off, active].find((each) => each && node.contains(each)) ?? null;
  }

  /**
   * Give the focus to what had it before the card was drawn again; of an answered card it moves on.
   *
   * @param {Card} card
   * @param {HTMLElement} node
   * @param {Element} focused
   */
  #refocus(card, node, focused) {
    const open = this.store.isOpen(card);
    if (!open) this.view.focus.handOn(card.id);
    const field = open ? this.forms.get(card.id)?.first : null;
    const look = focused instanceof HTMLButtonElement ? `button.${[...focused.classList].join(".")}` : "input";
    const same = node.contains(focused) ? focused : (field ?? node.querySelector(`${look}:not([disabled])`) ?? node);
    if (same instanceof HTMLElement) this.steady.focus(same);
  }

  /** @param {Card} card */
  card(card) {
    if (asksNothing(card)) return this.notice(card);
    if (isDecided(card)) return this.decision(card);
    const open = this.store.isOpen(card);
    const isInput = card.kind === "input";
    const head = el("div", "ask", el("span", "icon", open ? "⚠" : ""), ` ${card.agent} `, ...asks(card));
    const node = this.frame(card, head, open ? "alertdialog" : "group");
    const hint = card.hint ? el("div", isInput ? "question" : "hint", card.hint) : "";
    const args = this.#arguments(card, open);
    node.append(...(isInput ? [hint, args] : [args, hint]));
    node.append(...(card.remarks ?? []).map((remark) => el("div", "remark", remark)));
    node.append(...(card.documents ?? []).map(documentPart));
    if (open) this.#open(node, card, head.textContent ?? "");
    else node.append(this.outcome(card));
    return node;
  }

  /**
   * @param {HTMLElement} node
   * @param {Card} card
   * @param {string} head
   */
  #open(node, card, head) {
    node.append(card.note ? el("div", "problem", card.note) : "");
    if (card.kind === "credential") this.offerToGive(node, card);
    else if (card.kind === "input" && !card.tool) this.offerToAnswer(node, card);
    else this.offer(node, card);
    this.view.liveText.textContent = [head, card.kind === "input" ? card.hint : "", card.note]
      .filter(Boolean)
      .join(" ");
  }

  /**
   * One line: `✓ You approved refund(order="17") in [4]`.
   *
   * @param {Card} card
   */
  decision(card) {
    const values = (card.arguments ?? []).map(({ name, text }) => `${name}=${text}`).join(", ");
    const call = card.tool ? el("code", "", `${card.tool}(${values})`) : card.hint ? `"${card.hint}"` : "";
    const who = card.agent === this.store.title ? null : el("span", "dim", ` · ${card.agent}`);
    const head = el("div", "ask", this.outcome(card, ...(card.alike.length ? decidedSubject(card) : [call])), who);
    const node = this.frame(card, head, "group");
    if (card.alike.length) node.append(decidedCalls(card));
    node.classList.add("adknb-decision");
    node.title = card.tool && card.hint ? card.hint : "";
    this.view.liveText.textContent = "";
    return node;
  }

  /**
   * @param {Card} card
   * @param {HTMLElement} head
   * @param {string} role
   */
  frame(card, head, role) {
    const node = el("div", "card", head);
    head.id = newId();
    node.dataset.state = card.state;
    node.dataset.card = card.id;
    node.dataset.kind = card.kind;
    node.tabIndex = -1;
    setAttribute(node, "aria-labelledby", head.id);
    setAttribute(node, "role", role);
    this.steady.guard(node);
    node.addEventListener("keydown", (event) => this.onCardKey(event));
    return node;
  }

  /**
   * A card of an error, a busy model or a message that was not sent, which no agent waits for.
   *
   * @param {Card} card
   */
  notice(card) {
    const open = this.store.isOpen(card);
    /** @param {string} decision */
    const act = (decision) => this.store.decide(card, decision, {});
    const { head, parts, spoken } = NOTICES[card.kind](card, open, act, () => this.focusNext(card.id));
    const node = this.frame(card, head, "group");
    node.append(...parts);
    if (open && card.note) node.append(el("div", "problem", card.note));
    if (open) this.view.liveText.textContent = spoken;
    else if (card.kind === "wait") node.hidden = true;
    else if (card.state !== "asked" || this.store.sent.has(card.id)) node.append(this.outcome(card));
    return node;
  }

  /**
   * @param {Card} card
   * @param {...Child} subject The call or question.
   */
  outcome({ state, note }, ...subject) {
    const [icon, word] = ANSWERED[state] ?? ["…", "sent; the kernel answers when it is free"];
    const rest = !note || note.startsWith("in [") ? note : `: ${note}`;
    return el(
      "span",
      "outcome",
      el("b", "", `${icon} ${word}`),
      subject.some(Boolean) ? " " : "",
      ...subject,
      rest && !rest.startsWith(":") ? ` ${rest}` : rest,
    );
  }

  /**
   * Add buttons to approve and reject, and for a call to edit its arguments. An open form stays until it is left.
   *
   * @param {HTMLElement} node
   * @param {Card} card
   */
  offer(node, card) {
    const place = el("div", "place");
    node.append(place);
    const form = this.forms.get(card.id);
    if (form && !(card.changed && form.values)) {
      place.append(form.node);
      return;
    }
    /** @param {AnswerForm} opened */
    const show = (opened) => {
      this.forms.set(card.id, opened);
      put(place, opened.node);
      this.all.tell();
      opened.first?.focus();
    };
    const now = () => this.#now(card);
    const back = (/** @type {string} */ from) => () => this.leaveForm(card.id, from);
    const command = card.how ? el("span", "twin", "or type: ", el("code", "", card.how)) : "";
    const table = this.tables.get(card.id);
    const [yes, no] = card.in_doubt
      ? ["Call again", "Do not call again…"]
      : [approveLabel(card, table?.total), "Reject…"];
    const reject = button(no, "reject", () => show(this.reasonForm(card, now, back("reject"))));
    const approve = button(yes, "go", () => this.answer(now(), true));
    if (card.changed) {
      place.append(this.offerAfterAChange(card, approve, reject, command));
      return;
    }
    const edit = button("Edit…", "edit", () => {
      this.whole(card, (call) => show(this.editForm(call, now, back("edit"))));
    });
    if (table) {
      table.changed = () => {
        approve.textContent = approveLabel(card, table.total);
        approve.disabled = !table.ticked.length;
        reject.disabled = !table.ticked.length;
      };
      table.changed();
    }
    const label = `${yes}, and allow the rest of this turn`;
    const all = button(label, "all", () => this.answer(now(), true, { forTurn: true }));
    const ways = [
      approve,
      card.kind === "approval" && !card.alike.length ? edit : null,
      reject,
      card.for_turn ? all : null,
    ];
    if (card.destructive) ways.reverse();
    place.append(buttonRow(...ways, command));
  }

  /**
   * The current card: Python may have changed it since it was drawn.
   *
   * @param {Card} card
   */
  #now(card) {
    return this.store.cards.get(card.id) ?? card;
  }

  /**
   * @param {string} id
   * @param {string} focused
   */
  leaveForm(id, focused) {
    this.forms.delete(id);
    const known = this.nodes.get(id);
    if (known) known.drawn = "";
    this.paint();
    const focusable = this.nodes.get(id)?.node.querySelector(`.adknb-${focused}`);
    if (focusable instanceof HTMLElement) this.steady.focus(focusable);
  }

  /**
   * @param {Card} call
   * @param {() => Card} now
   * @param {() => void} leave
   */
  editForm(call, now, leave) {
    const yes = call.action ?? "Approve";
    const changed = `${yes} with these changes`;
    const options = {
      label: `${yes} unchanged`,
      changed,
      more: [button("Back", "back", leave)],
      leave,
      values: call.args,
    };
    return new AnswerForm(call.schema, (args) => this.answer(now(), true, { args }), options);
  }

  /**
   * @param {Card} card
   * @param {() => Card} now
   * @param {() => void} leave
   */
  reasonForm({ kind }, now, leave) {
    const reason = {
      type: "string",
      title: kind === "approval" || kind === "doubt" ? "reason (optional; the model is told)" : "reason (optional)",
    };
    /** @param {{reason?: string} | null} answer */
    const send = (answer) => this.answer(now(), false, { reason: answer?.reason?.trim() || null });
    const options = { label: "Reject", look: "reject", more: [button("Back", "back", leave)], leave };
    return new AnswerForm({ properties: { reason }, "x-titles": true }, send, options);
  }

  /**
   * @param {Card} card
   * @param {boolean} confirmed
   * @param {{args?: any, reason?: string | null, forTurn?: boolean}} [more]
   */
  answer(card, confirmed, { args = null, reason = null, forTurn = false } = {}) {
    const alike = card.alike.length ? (this.tables.get(card.id)?.ticked ?? [card.alike[0].key]) : undefined;
    const more = { args, reason, alike, ...(forTurn && { for_turn: true }) };
    if (card.kind === "approval" || card.kind === "doubt")
      this.store.decide(card, confirmed ? "approve" : "reject", more);
    else
      this.store.decide(card, "answer", { value: { confirmed, ...(reason && { reason }), ...(alike && { alike }) } });
  }

  /**
   * Call `then` with the whole call; arguments that are too long for a card are requested from Python.
   *
   * @param {Card} card
   * @param {(data: any) => void} then
   */
  whole(card, then) {
    if (card.args) then(card);
    else this.store.need("call", card.id, then);
  }

  /**
   * @param {Card} card
   * @param {HTMLElement} value
   * @param {HTMLElement} more
   */
  showAll(card, value, more) {
    const place = [...(value.closest(".adknb-arguments")?.children ?? [])].findIndex((each) => each.contains(value));
    this.store.need("call", card.id, ({ texts }) => {
      value.classList.add("adknb-whole");
      value.tabIndex = 0;
      value.textContent = texts[place];
      more.remove();
    });
  }

  /**
   * The arguments of the call that a card asks for, or the table of its calls.
   *
   * @param {Card} card
   * @param {boolean} open
   */
  #arguments(card, open) {
    const table = open ? this.#tableOf(card) : null;
    if (table) return table.node;
    const list = argumentList(card.arguments, (value, more) => this.showAll(card, value, more)) ?? "";
    const [alike] = card.alike;
    if (card.alike.length !== 1 || alike.count === 1) return list;
    return el("div", "", list, el("div", "remark", `${alike.count.toLocaleString("en")} calls with these arguments`));
  }

  /**
   * The table of a card that asks for calls of more than one kind.
   *
   * @param {Card} card
   */
  #tableOf(card) {
    if (card.alike.length < 2) return null;
    const known = this.tables.get(card.id);
    if (known?.keys === card.alike.map(({ key }) => key).join()) return known;
    const table = new AlikeTable(card, (then) => this.store.need("call", card.id, ({ alike }) => then(alike)));
    this.tables.set(card.id, table);
    return table;
  }

  /**
   * The buttons after the tool was redefined: the request was for the earlier version, so it cannot be approved.
   *
   * @param {Card} card
   * @param {HTMLButtonElement} approve
   * @param {HTMLElement} reject
   * @param {HTMLElement | string} command
   */
  offerAfterAChange(card, approve, reject, command) {
    approve.disabled = true;
    /** @param {string} decision */
    const act = (decision) => this.store.decide(card, decision, { args: null, reason: null });
    const again = card.gone ? "" : button("Re-ask", "go", () => act("reask"));
    const label = card.gone ? `Run ${card.version}` : `Run as it was (${card.version})`;
    const old = card.version ? button(label, "edit", () => act("old")) : "";
    const problem = el("div", "problem", card.changed);
    return el("div", "", problem, buttonRow(approve, again, old, reject, command));
  }

  /**
   * Add a form for a credential, which is sent in one message and not stored on the page.
   *
   * @param {HTMLElement} node
   * @param {Card} card
   */
  offerToGive(node, card) {
    const form = this.#formOf(card, () => {
      const decide = (/** @type {string} */ decision, /** @type {object} */ more) => {
        this.forms.delete(card.id);
        this.store.decide(this.#now(card), decision, more);
      };
      const refuse = button("Refuse", "refuse", () => decide("refuse", {}));
      const schema = { ...card.answer_schema, "x-titles": true };
      return new AnswerForm(schema, (value) => decide("answer", { value }), { label: "Continue", more: [refuse] });
    });
    put(form.twin, "or type: ", el("code", "", card.how));
    node.append(consentLink(card.link) ?? "", form.node);
  }

  /**
   * @param {HTMLElement} node
   * @param {Card} card
   */
  offerToAnswer(node, card) {
    const send = (/** @type {unknown} */ value) => this.store.decide(this.#now(card), "answer", { value });
    const form = this.#formOf(card, () => new AnswerForm(card.answer_schema, send));
    const isBelow = this.store.box && this.isNext(card);
    put(form.twin, ...(isBelow ? ["or type it below"] : ["or type: ", el("code", "", card.how)]));
    node.append(form.node);
  }

  /**
   * The form of a card: the existing one, with its input, or a new one.
   *
   * @param {Card} card
   * @param {() => AnswerForm} open
   */
  #formOf(card, open) {
    const form = this.forms.get(card.id) ?? open();
    this.forms.set(card.id, form);
    return form;
  }

  /**
   * True for the oldest question, which text typed elsewhere answers.
   *
   * @param {Card} card
   */
  isNext(card) {
    return card === [...this.store.cards.values()].find((each) => each.kind === "input" && this.store.isOpen(each));
  }

  /**
   * Move the focus to the next open card of a request behind the card `id`, else to the first.
   *
   * @param {string} id
   */
  focusNext(id) {
    const open = [...this.store.cards.values()].filter((card) => this.store.isOpen(card) && !asksNothing(card));
    const order = [...this.store.cards.keys()];
    const next = open.find((card) => order.indexOf(card.id) > order.indexOf(id)) ?? open[0];
    const node = next && this.nodes.get(next.id)?.node;
    if (!node) return false;
    const field = this.forms.get(next.id)?.first; // no button: an Enter too many would press it
    this.steady.handTo(node, field?.matches("input, textarea") ? field : node);
    node.scrollIntoView({ block: "nearest" });
    return true;
  }

  /**
   * True if a node is in the card `id`, or in the button for all of them.
   *
   * @param {string} id
   * @param {Node} node
   */
  isIn(id, node) {
    return Boolean(this.nodes.get(id)?.node.contains(node)) || this.all.node.contains(node);
  }

  stop() {
    this.steady.stop();
    this.all.stop();
  }

  /** @param {KeyboardEvent} event */
  onCardKey(event) {
    if (event.key === "Escape") this.view.leave();
    event.stopPropagation();
  }
}
