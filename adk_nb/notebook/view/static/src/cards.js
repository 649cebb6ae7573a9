// The cards: what is asked of the reader, below the events, and what became of it.

import { AnswerForm } from "./answer_form.js";
import { button, el, newId, put } from "./elements.js";
import { argumentList, errorParts, waitParts } from "./error_cards.js";
import { ANSWERED } from "./words.js";

export class Cards {
  constructor(store, view) {
    this.store = store;
    this.view = view;
    this.nodes = new Map(); // card id -> {node, drawn}
    this.forms = new Map(); // card id -> its form, which keeps what was typed when that is refused
    this.node = el("div", "cards");
  }

  paint() {
    for (const [id, { node }] of this.nodes) {
      if (this.store.cards.has(id)) continue;
      node.remove();
      this.nodes.delete(id);
      this.forms.delete(id);
    }
    for (const card of this.store.cards.values()) {
      const drawn = JSON.stringify([card, this.store.isOpen(card), this.isNext(card)]);
      const known = this.nodes.get(card.id);
      if (known?.drawn === drawn) continue;
      const active = document.activeElement;
      const focused = known?.node.contains(active);
      const node = this.card(card);
      if (known) known.node.replaceWith(node);
      else this.node.append(node);
      if (focused)
        (node.contains(active) ? active : (this.store.isOpen(card) && this.forms.get(card.id)?.first) || node).focus();
      this.nodes.set(card.id, { node, drawn });
    }
  }

  card(card) {
    if (card.kind === "error" || card.kind === "wait") return this.notice(card);
    const open = this.store.isOpen(card);
    const isCredential = card.kind === "credential";
    const head = el("div", "ask", el("span", "icon", open ? "⚠" : ""), ` ${card.agent} `);
    if (isCredential) head.append("calls ", el("b", "", card.tool), `, which needs ${card.needs}`);
    else if (card.kind === "input" && !card.tool) head.append("asks");
    else head.append("asks to call ", el("b", "", card.tool));
    const node = this.frame(card, head, open ? "alertdialog" : "group");
    const whole = (value, more) => this.showAll(card, value, more);
    const hint = card.hint ? el("div", card.kind === "input" ? "question" : "hint", card.hint) : "";
    const args = argumentList(card.arguments, whole) ?? "";
    node.append(...(card.kind === "input" ? [hint, args] : [args, hint]));
    node.append(...(card.remarks ?? []).map((remark) => el("div", "remark", remark)));
    if (open) {
      node.append(card.note ? el("div", "problem", card.note) : "");
      if (isCredential) this.offerToGive(node, card);
      else if (card.kind === "input" && !card.tool) this.offerToAnswer(node, card);
      else this.offer(node, card);
      this.view.said.textContent = [head.textContent, card.kind === "input" ? card.hint : "", card.note]
        .filter(Boolean)
        .join(" ");
    } else {
      node.append(this.outcome(card));
      this.view.said.textContent = "";
    }
    return node;
  }

  frame(card, head, role) {
    const node = el("div", "card", head);
    head.id = newId();
    node.dataset.state = card.state;
    node.dataset.card = card.id;
    node.dataset.kind = card.kind;
    node.tabIndex = -1;
    node.setAttribute("aria-labelledby", head.id);
    node.setAttribute("role", role);
    node.addEventListener("keydown", (event) => this.onCardKey(event));
    return node;
  }

  // It tells, and asks for nothing.
  notice(card) {
    const open = this.store.isOpen(card);
    const act = (decision) => this.store.decide(card, decision, {});
    const { head, parts, said } = card.kind === "wait" ? waitParts(card) : errorParts(card, open, act);
    const node = this.frame(card, head, "group");
    node.append(...parts);
    if (open) this.view.said.textContent = said;
    else if (card.kind === "wait") node.hidden = true;
    else if (card.state !== "asked" || this.store.sent.has(card.id)) node.append(this.outcome(card));
    return node;
  }

  outcome(card) {
    const [icon, word] = ANSWERED[card.state] ?? ["…", "sent; the kernel answers when it is free"];
    return el("div", "outcome", el("b", "", `${icon} ${word}`), card.note ? `: ${card.note}` : "");
  }

  // A yes, a no with a reason, and for a call a form with its arguments. The form stays until it is left.
  offer(node, card) {
    const place = el("div", "place");
    node.append(place);
    const form = this.forms.get(card.id);
    if (form && !(card.changed && form.values)) return place.append(form.node);
    const command = card.how ? el("span", "twin", "or type: ", el("code", "", card.how)) : "";
    const now = () => this.store.cards.get(card.id);
    const ask = (made) => {
      this.forms.set(card.id, made);
      put(place, made.node);
      made.first?.focus();
    };
    const reject = button("Reject…", "reject", () =>
      ask(this.reasonForm(card, now, () => this.leaveForm(card.id, "reject"))),
    );
    const approve = button("Approve", "go", () => this.answer(now(), true));
    if (card.changed) return place.append(this.offerAfterAChange(card, approve, reject, command));
    const edit = button("Edit…", "edit", () => {
      this.whole(card, (call) => ask(this.editForm(call, now, () => this.leaveForm(card.id, "edit"))));
    });
    const ways = [approve, card.kind === "approval" ? edit : null, reject];
    if (card.destructive) ways.reverse();
    place.append(el("div", "buttons", ...ways, command));
  }

  leaveForm(id, focused) {
    this.forms.delete(id);
    this.nodes.get(id).drawn = "";
    this.paint();
    this.nodes.get(id).node.querySelector(`.adknb-${focused}`)?.focus();
  }

  editForm(call, now, leave) {
    const changed = "Approve with these changes";
    const options = {
      label: "Approve unchanged",
      changed,
      more: [button("Back", "back", leave)],
      leave,
      values: call.args,
    };
    return new AnswerForm(call.schema, (args) => this.answer(now(), true, { args }), options);
  }

  reasonForm({ kind }, now, leave) {
    const reason = {
      type: "string",
      title: kind === "approval" ? "reason (optional; the model is told)" : "reason (optional)",
    };
    const send = (said) => this.answer(now(), false, { reason: said.reason?.trim() || null });
    const options = { label: "Reject", look: "reject", more: [button("Back", "back", leave)], leave };
    return new AnswerForm({ properties: { reason }, "x-titles": true }, send, options);
  }

  answer(card, confirmed, { args = null, reason = null } = {}) {
    if (card.kind === "approval") this.store.decide(card, confirmed ? "approve" : "reject", { args, reason });
    else this.store.decide(card, "answer", { value: reason ? { confirmed, reason } : { confirmed } });
  }

  // Arguments that are too long to come with the card are asked for.
  whole(card, then) {
    if (card.args) then(card);
    else this.store.need("call", card.id, then);
  }

  showAll(card, value, more) {
    const place = [...value.closest(".adknb-arguments").children].indexOf(value.parentNode);
    this.store.need("call", card.id, ({ texts }) => {
      value.classList.add("adknb-whole");
      value.tabIndex = 0;
      value.textContent = texts[place];
      more.remove();
    });
  }

  // The tool is another than was asked about: a yes would be to something else.
  offerAfterAChange(card, approve, reject, command) {
    approve.disabled = true;
    const act = (decision) => this.store.decide(card, decision, { args: null, reason: null });
    const again = button("Re-ask", "go", () => act("reask"));
    const old = card.version ? button(`Run old version (${card.version})`, "edit", () => act("old")) : "";
    const why = el("div", "problem", card.changed);
    return el("div", "", why, el("div", "buttons", approve, again, old, reject, command));
  }

  // A credential goes out once, in one message, and is kept nowhere.
  offerToGive(node, card) {
    if (!this.forms.has(card.id)) {
      const decide = (decision, more) => {
        this.forms.delete(card.id);
        this.store.decide(this.store.cards.get(card.id), decision, more);
      };
      const refuse = button("Refuse", "refuse", () => decide("refuse", {}));
      const schema = { ...card.answer_schema, "x-titles": true };
      this.forms.set(
        card.id,
        new AnswerForm(schema, (value) => decide("answer", { value }), { label: "Continue", more: [refuse] }),
      );
    }
    const form = this.forms.get(card.id);
    put(form.twin, "or type: ", el("code", "", card.how));
    node.append(consentLink(card.link) ?? "", form.node);
  }

  offerToAnswer(node, card) {
    if (!this.forms.has(card.id)) {
      const send = (value) => this.store.decide(this.store.cards.get(card.id), "answer", { value });
      this.forms.set(card.id, new AnswerForm(card.answer_schema, send));
    }
    const form = this.forms.get(card.id);
    const isBelow = this.store.box && this.isNext(card);
    put(form.twin, ...(isBelow ? ["or type it below"] : ["or type: ", el("code", "", card.how)]));
    node.append(form.node);
  }

  // Words that are typed elsewhere answer the oldest question.
  isNext(card) {
    return card === [...this.store.cards.values()].find((each) => each.kind === "input" && this.store.isOpen(each));
  }

  onCardKey(event) {
    if (event.key === "Escape") this.view.leave();
    event.stopPropagation();
  }
}

function consentLink(uri) {
  if (!/^https?:/i.test(uri)) return null;
  const link = el("a", "link", `Open ${new URL(uri).host}`);
  link.href = uri;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return el("div", "step", link, el("span", "dim", " and let it in there, then paste where that leads:"));
}
