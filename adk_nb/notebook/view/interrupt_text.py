"""Interrupts as text and as blocks: the request, what to type, and the answer."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

from adk_nb import types
from adk_nb.auth.auth_schemes import APIKey, HTTPBase
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.notebook.view import call_arguments
from adk_nb.notebook.view.call_arguments import VALUES_LIMIT, Schema, Schemas, call_line
from adk_nb.notebook.view.document import (
    Block,
    Card,
    Code,
    Fold,
    Item,
    Items,
    Link,
    Section,
    Span,
    Text,
    joined,
    parts_of,
    plain,
    rich,
)
from adk_nb.notebook.view.plain_text import (
    abridged,
    arguments_text,
    call_text,
    cleaned,
    exact_text,
    is_safe_link,
    json_text,
    name_text,
    one_line,
    shortened,
    with_escapes,
)
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import without_known
from adk_nb.runtime.approvals import read_answer
from adk_nb.runtime.credentials import refusal
from adk_nb.runtime.interrupts import Interrupt, answered_value

_SAFE_IN_URL = ":/?#[]@!&*+,;=%~-._"
"""Characters of a URL that need no quoting in html and markdown."""
_REMOTE = " (remote)"
"""Marks an agent of another process."""
_PROMPT = 2_000
"""Characters of a question."""
_MOST_KINDS = 50
"""Kinds of calls that one decision names."""
_MOST_UNFOLDED = 6
"""Kinds of calls that stand open below a decision."""
FOR_TURN = "for the rest of this turn"
"""Beside a yes that holds for all calls of the tool until the turn ends."""
REASK_REASON = "its tool was redefined since; call it again if it is still needed"
"""The reason of a rejection after which the agent may ask again."""


class Verdict(NamedTuple):
    """The state of an answered card."""

    state: str
    note: str = ""
    place: str = ""
    """The place of the answer, as `in [8]`; empty: the view itself."""
    args: Json | None = None
    """The approved arguments. None: those of the request."""
    remark: str = ""
    """The payload of a yes, or the reason of a no."""
    is_click: bool = False
    """A click, which running the notebook again does not repeat."""
    for_turn: bool = False
    """A yes to all calls of the tool in the rest of the turn."""
    alike: Sequence[tuple[int, Json]] = ()
    """Number and arguments of the calls of each kind that it decides; empty: the call that was asked for alone."""

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the card."""
        return {"state": self.state, "note": self.note}


class Decision(NamedTuple):
    """An answer with its question: `✓ You approved`, `pay(amount=45)`, ` in [8]`."""

    lead: str
    call: str
    """Empty if the answer is not about a call."""
    suffix: str
    """Includes the space or colon that it begins with; may be empty."""
    kinds: Sequence[str] = ()
    """The kinds of calls that it is about, a line each; empty: `call` alone."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """A paragraph, and below it the kinds of calls, in a fold if they are many."""
        call = (" ", Span(self.call, "code", exact=True)) if self.call else ()
        line = Text((self.lead, *call, self.suffix))
        if not self.kinds:
            return (line,)
        kinds = Items(tuple(Item(Span(kind, "code", exact=True)) for kind in self.kinds))
        if len(self.kinds) <= _MOST_UNFOLDED:
            return line, kinds
        fold = Fold(f"{len(self.kinds)} kinds of calls", (kinds,))
        return line, rich(fold), plain(kinds)


def expected_interrupts(open_: Sequence[Interrupt], text: str) -> list[Interrupt]:
    """The interrupts that a turn with answer `text` waits for; with a text it does not wait for outcomes and tasks."""
    return [interrupt for interrupt in open_ if interrupt.kind not in ("long_running", "task") or not text]


# ---- the request


def agent_text(interrupt: Interrupt) -> str:
    """The agent that asks; one of another process is marked."""
    return one_line(interrupt.agent, 100) + _REMOTE * interrupt.is_remote


def request_line(interrupt: Interrupt) -> str:
    """The agent or tool and its request, on one line."""
    if interrupt.kind == "credential":
        return f"{credential_tools(interrupt)} needs {credential_need(interrupt)}{retry_note(interrupt, ' ({})')}"
    if interrupt.is_text:
        asks = " · ".join(filter(None, (_prompt_line(interrupt), _payload_line(interrupt))))
        return f"{agent_text(interrupt)} asks: {asks}" if asks else f"{agent_text(interrupt)} asks"
    call = interrupt.call
    return f"waiting for the outcome of {call_text(name_text(call.name), arguments_text(call.args or {}))}"


def unreadable_text(request: types.FunctionCall, reason: str) -> str:
    """Return the text for a stored request that cannot be read, and so asks nothing."""
    subject = "an approval" if request.name == APPROVAL_REQUEST else "a credential"
    return f"a request for {subject} that cannot be read has no effect: {one_line(reason)}"


def row_text(interrupt: Interrupt) -> str:
    """The text of a question's row."""
    options = f"({', '.join(map(one_line, interrupt.options))})" if interrupt.options else ""
    asks = " · ".join(filter(None, (_prompt_line(interrupt), _payload_line(interrupt))))
    return " ".join(filter(None, ("asks:", asks, options)))


def prompt_text(interrupt: Interrupt) -> str:
    """The prompt; for an approval without the payload."""
    return abridged(with_escapes(without_known(interrupt.prompt.strip())), _PROMPT)


def approval_prompt(interrupt: Interrupt) -> str:
    """The prompt of an approval, and the payload that it asks for; empty without both."""
    return " · ".join(filter(None, (prompt_text(interrupt), _payload_text(interrupt.payload))))


def documents(interrupt: Interrupt) -> list[tuple[str, str]]:
    """Title and text of each document that an approver must see in full; invisible characters are escaped."""
    listed: list[tuple[str, str]] = []
    for title, text in interrupt.documents.items():
        count = len(text.rstrip("\n").split("\n"))
        lines = "1 line" if count == 1 else f"{count:,} lines"
        listed.append((f"{one_line(with_escapes(title))}, {lines}", with_escapes(without_known(text.rstrip("\n")))))
    return listed


def _prompt_line(interrupt: Interrupt) -> str:
    if interrupt.kind == "node_approval":
        return " ".join(prompt_text(interrupt).split())
    return one_line(interrupt.prompt, _PROMPT)


def _payload_line(interrupt: Interrupt) -> str:
    """The call of a node approval; for any other question its payload."""
    if node := node_of(interrupt):
        tool, args, more = node
        return call_line(tool, args) + (f" · {abridged(exact_text(more), _PROMPT)}" if more else "")
    payload = interrupt.payload
    return "" if payload is None else f"payload: {shortened(json_text(payload), _PROMPT)}"


def _payload_text(payload: Any) -> str:
    return "" if payload is None else f"payload: {abridged(exact_text(payload), VALUES_LIMIT)}"


def node_of(interrupt: Interrupt) -> tuple[str, Json, Json] | None:
    """Name and arguments of a node approval, and the rest of its payload. None: another interrupt."""
    payload = interrupt.payload
    if interrupt.kind != "node_approval" or not isinstance(payload, dict):
        return None
    more = dict(cast(Json, payload))
    tool, args, _ = more.pop("tool_name", ""), more.pop("args", None), more.pop("in_doubt", None)
    return (str(tool), cast(Json, args), more) if isinstance(args, dict) else None


def call_of(interrupt: Interrupt, schema: Schema | None = None) -> str:
    """The call of an approval."""
    if interrupt.kind == "node_approval":
        return _payload_line(interrupt)
    return call_line(interrupt.call.name or "", interrupt.call.args or {}, schema)


def _remarks(interrupt: Interrupt, schema: Schema | None) -> list[str]:
    call = call_arguments.displayed_call(interrupt.call.name or "", interrupt.call.args or {}, schema)
    asks = " ".join(approval_prompt(interrupt).split())
    return [*([asks] if asks else []), *call.remarks, *call_arguments.shortened_remark(call)]


def credential_tools(interrupt: Interrupt) -> str:
    """The tools that need a credential."""
    return ", ".join(dict.fromkeys(name_text(call.call.name) for call in interrupt.calls))


def credential_need(interrupt: Interrupt) -> str:
    """The credential that tools need."""
    scheme = interrupt.auth_scheme
    if isinstance(scheme, APIKey):
        return f"a key ({scheme.in_.value} {one_line(scheme.name, 100)})"
    if isinstance(scheme, HTTPBase):
        return "name:password" if scheme.scheme.lower() == "basic" else f"a {one_line(scheme.scheme, 100)} token"
    return "sign-in"


def credential_state(auth_config: AuthConfig | None) -> str:
    """The status text of a call that lacks a credential."""
    is_typed = auth_config is not None and isinstance(auth_config.auth_scheme, APIKey | HTTPBase)
    return "needs a key" if is_typed else "needs sign-in"


def retry_note(interrupt: Interrupt, form: str = "{}") -> str:
    """The reason why a credential is requested again, inserted into `form`; empty for the first request."""
    return form.format(f"asked again: {one_line(interrupt.problem, 300)}") if interrupt.problem else ""


def link(interrupt: Interrupt) -> str | None:
    """The address to open, safe to click; None: there is none."""
    uri = quote(interrupt.auth_uri or "", safe=_SAFE_IN_URL) if interrupt.auth_config else ""
    return uri if urlsplit(uri).scheme in ("http", "https") and is_safe_link(uri) else None


def label(interrupt: Interrupt) -> str:
    """Number and tools, as `2 (pay)`, or `2 (pay, in doubt)` for a call that may have taken effect already."""
    doubt = ", in doubt" if interrupt.in_doubt else ""
    return f"{interrupt.number} ({', '.join(map(name_text, interrupt.names))}{doubt})"


# ---- what to type


def commands(
    interrupt: Interrupt, magic: str, among: Sequence[Interrupt] = (), *, redefined: bool = False
) -> tuple[str, ...]:
    """The lines to type as the answer; for an approval, yes and no.

    Args:
        interrupt: The open interrupt.
        magic: The `%confirm` line of the session; empty for a chat that only Python code reaches.
        among: All open interrupts; a single one needs no number, unless it is in doubt.
        redefined: Its tool was redefined, so that the call is to be requested again.
    """
    if interrupt.is_approval:
        is_numbered = interrupt.in_doubt or sum(open_.is_approval for open_ in among) > 1
        which = str(interrupt.number or repr(interrupt.id)) if is_numbered else ""
        if not magic:
            no = f"chat.reject({which})"
            return no if redefined else f"chat.approve({which})", no
        line = f"{magic} {which}".rstrip()
        return f"{line} --{'reask' if redefined else 'yes'}", f"{line} --no"
    number = interrupt.number or 1
    if interrupt.kind == "credential":
        several = sum(open_.kind == "credential" for open_ in among) > 1
        return (f"{magic} {number}" if magic else f"chat.answer({f'which={number}' if several else ''})",)
    if interrupt.kind == "task":
        return (f"{magic.replace('%confirm', '%chat', 1)} ..." if magic else "chat.ask('...')",)
    if not interrupt.is_question:
        return (f"{magic} {number} ..." if magic else f"chat.answer(...{f', {number}' if len(among) > 1 else ''})",)
    oldest = next((open_ for open_ in among if open_.is_question and not open_.is_approval), interrupt)
    takes_words = not any(open_.kind in ("approval", "credential") for open_ in among)
    if oldest.id == interrupt.id and takes_words:
        return (f"{magic.replace('%confirm', '%chat', 1)} ..." if magic else "chat.ask('...')",)
    return (f"{magic} {number} ..." if magic else f"chat.answer('...', {number})",)


def approval_commands(interrupts: Sequence[Interrupt], magic: str, redefined: Container[str] = ()) -> tuple[str, str]:
    """The lines to type for yes and no. The yes of a redefined tool is `--reask`: both forms are listed if needed."""
    both = [commands(interrupt, magic, interrupts, redefined=interrupt.id in redefined) for interrupt in interrupts]
    first, no = both[0]
    more = [yes for yes, _ in both[1:] if magic and yes.split()[-1] != first.split()[-1]]
    return ", ".join([first, *more]), no


# ---- as blocks


def reply_blocks(
    interrupts: Sequence[Interrupt],
    magic: str,
    schemas: Schemas,
    redefined: Container[str] = (),
    *,
    typed: bool = True,
) -> list[Block]:
    """The interrupts that a reply waits for.

    `typed`: include the lines to type. False for a saved file, where a later cell may have answered them.
    """
    approvals = [interrupt for interrupt in interrupts if interrupt.kind == "approval"]
    blocks: list[Block] = []
    for interrupt in approvals:
        number = f" ({interrupt.number})" if len(approvals) > 1 else ""
        asks = "May have taken effect already; asks whether to make it again" if interrupt.in_doubt else ""
        title = f"{asks or 'Asks for approval'}{number}:"
        blocks.append(_approval(interrupt, title, "", schemas.get(interrupt.id)))
    if typed:
        blocks += _typed_approvals(approvals, magic, redefined)
    blocks += _request_cards(interrupts, magic, interrupts, typed=typed)
    if not typed and any(interrupt.has_card for interrupt in interrupts):
        blocks.append(Text(("Open requests: ", Span(magic or "chat.interrupts", "code")), small=True))
    return blocks


def list_blocks(
    interrupts: Sequence[Interrupt],
    magic: str,
    schemas: Schemas,
    among: Sequence[Interrupt] | None = None,
    redefined: Container[str] = (),
) -> list[Block]:
    """Open interrupts with the lines to type; approvals first, by number.

    `among`: all open interrupts; None: `interrupts`.
    """
    approvals = [interrupt for interrupt in interrupts if interrupt.kind == "approval"]
    agents = [name_text(interrupt.agent) + _REMOTE * interrupt.is_remote for interrupt in approvals]
    cards = [
        _approval(
            interrupt, f"{interrupt.number}{', in doubt' * interrupt.in_doubt}", f"{agent}: ", schemas.get(interrupt.id)
        )
        for interrupt, agent in zip(approvals, agents, strict=True)
    ]
    cards_of_rest = tuple(_request_cards(interrupts, magic, interrupts if among is None else among))
    blocks = [*cards, *_typed_approvals(approvals, magic, redefined)]
    return [*blocks, Section(cards_of_rest)] if blocks and cards_of_rest else [*blocks, *cards_of_rest]


def _typed_approvals(approvals: Sequence[Interrupt], magic: str, redefined: Container[str]) -> list[Block]:
    if not approvals:
        return []
    lead = "Answer with" if len(approvals) == 1 else "Answer each by its number, as"
    return [_command_text(lead, approval_commands(approvals, magic, redefined))]


def _approval(interrupt: Interrupt, title: str, agent: str, schema: Schema | None) -> Card:
    line = call_of(interrupt, schema)
    if interrupt.told:
        others = {name: value for name, value in (interrupt.call.args or {}).items() if name not in interrupt.told}
        line = f"{call_line(interrupt.call.name or '', others, schema)[:-1]}{', ' if others else ''}…)"
    call = Span(line, "code", exact=True)
    below: list[Block] = [_note(remark) for remark in _remarks(interrupt, schema)]
    for document, text in documents(interrupt):
        below += [Text((Span(document, "strong"),)), Code(Span(text, exact=True))]
    return Card((Span(title, "strong"), f" {agent}", call), tuple(below))


def _note(text: str) -> Text:
    return Text(Span(text, exact=True))


def _request_cards(
    interrupts: Iterable[Interrupt], magic: str, among: Sequence[Interrupt], *, typed: bool = True
) -> Iterator[Card]:
    for interrupt in sorted(interrupts, key=lambda interrupt: interrupt.kind != "credential"):
        if interrupt.kind == "approval":
            continue
        below: list[Block] = [Text(("Open ", Link("this page", url)))] if (url := link(interrupt)) else []
        below += [Items([Item(option) for option in interrupt.options], "1")] if interrupt.options else []
        if typed or not interrupt.has_card:
            lead = "Answer with"
            if interrupt.kind == "credential":
                lead = "Then paste the address it leads to into" if interrupt.auth_uri else "Type it into the field of"
            elif interrupt.options:
                lead = "Choose one, by its words or its number, with"
            elif not interrupt.is_text:
                lead = "Send it with"
            elif not interrupt.is_approval and (expected := _expected(interrupt.schema)):
                lead = f"Answer ({expected}) with"
            below.append(_command_text(lead, commands(interrupt, magic, among)))
        yield Card(Span(request_line(interrupt), "strong", exact=True), tuple(below))


def _command_text(lead: str, typed: Sequence[str]) -> Text:
    """The lines to type, behind `lead`."""
    return Text((f"{lead} ", *parts_of(joined([Span(text, "code") for text in typed], " or "))))


_TYPES = {"boolean": "yes or no", "integer": "a whole number", "number": "a number", "array": "a list as JSON"}


def _expected(schema: Json) -> str:
    """A hint on the expected value, on one line; empty for text, and for other schemas."""
    if isinstance(choices := schema.get("enum"), list):
        return one_line(f"one of {', '.join(map(answer_text, cast(list[Any], choices)))}")
    if isinstance(fields := schema.get("properties"), dict):
        return one_line(f"JSON with {', '.join(cast(Json, fields))}")
    return _TYPES.get(str(schema.get("type")), "")


# ---- the answer


def verdict_of(interrupt: Interrupt, response: Json, place: str = "", *, is_click: bool = False) -> Verdict:
    """The verdict of an answer in its wire format."""
    verdict = _verdict(interrupt, response)
    return verdict._replace(place=place, is_click=is_click)


def _verdict(interrupt: Interrupt, response: Json) -> Verdict:
    if interrupt.kind == "credential":
        return Verdict("refused" if refusal(response) else "given")
    if interrupt.kind == "approval":
        decision = read_answer(response)
        if not decision.confirmed:
            reason = cleaned(decision.reason or "")
            return Verdict("rejected", reason, remark=reason)
        ran = "" if decision.args is None else f"ran with {call_arguments.arguments_line(decision.args)}"
        for_turn = interrupt.for_turn and decision.for_turn is True
        remark = "; ".join(filter(None, (_payload_text(decision.payload), FOR_TURN if for_turn else "")))
        note = "; ".join(filter(None, (ran, remark)))
        return Verdict("edited" if ran else "approved", note, args=decision.args, remark=remark, for_turn=for_turn)
    value = answered_value(types.FunctionResponse(response=response))
    if interrupt.kind == "node_approval" and isinstance(value, dict):
        decided = cast(Json, value)
        reason = str(decided.get("reason") or "")
        return Verdict("approved" if decided.get("confirmed") else "rejected", reason, remark=reason)
    return Verdict("answered", answer_text(value))


def answer_text(value: Any) -> str:
    """An answer in a log: text as it is, any other value as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cleaned(value) if isinstance(value, str) else shortened(json_text(value), _PROMPT)


def decision_of(interrupt: Interrupt, verdict: Verdict) -> Decision:
    """The answer on one line with its request and place; a credential is left out."""
    if interrupt.kind == "credential":
        lead = "✗ You refused" if verdict.state == "refused" else "✓ You gave"
        return Decision(f"{lead} the credential for {credential_tools(interrupt)}", "", _suffix(verdict.place, ""))
    if interrupt.is_approval:
        lead = "✗ You rejected" if verdict.state == "rejected" else "✓ You approved"
        if verdict.alike:
            return _decision_on_many(lead, interrupt, verdict)
        requested, args, changed = interrupt.call.args or {}, verdict.args, Json()
        if args is not None:
            changed = {name: requested[name] for name in requested if args.get(name) != requested[name]}
        was = f"(asked with {arguments_text(changed)})" if changed else ""
        if interrupt.kind == "node_approval":
            call = _payload_line(interrupt)
        else:
            call = call_text(name_text(interrupt.call.name), arguments_text(requested if args is None else args))
        place = " ".join(filter(None, (verdict.place, was)))
        return Decision(lead, call, _suffix(place, one_line(verdict.remark)))
    question = f'"{one_line(interrupt.prompt, 200)}"' if interrupt.prompt else agent_text(interrupt)
    return Decision(f"✓ You answered {question}", "", _suffix(verdict.place, one_line(verdict.note, _PROMPT)))


def _decision_on_many(lead: str, interrupt: Interrupt, verdict: Verdict) -> Decision:
    tool, suffix = name_text(interrupt.call.name), _suffix(verdict.place, one_line(verdict.remark))
    kinds = [
        call_text(tool, arguments_text(args)) + (f", {count:,} times" if count > 1 else "")
        for count, args in verdict.alike[:_MOST_KINDS]
    ]
    if len(verdict.alike) == 1:
        return Decision(lead, kinds[0], suffix)
    if rest := sum(count for count, _ in verdict.alike[_MOST_KINDS:]):
        kinds.append(f"{rest:,} more calls; the run of each has its arguments")
    total = sum(count for count, _ in verdict.alike)
    return Decision(f"{lead} {total:,} calls of", tool, suffix, kinds)


def _suffix(place: str, answer: str) -> str:
    return (f" {place}" if place else "") + (f": {answer}" if answer else "")


def answer_row_text(interrupt: Interrupt | None, response: types.FunctionResponse) -> str:
    """The text of an answer's row; `interrupt` None: the request is unknown."""
    values = response.response or {}
    if response.name == APPROVAL_REQUEST:
        decided, tool = read_answer(values), name_text(interrupt.call.name) if interrupt else "the call"
        by, reason = decision_origin(response), f": {cleaned(decided.reason)}" if decided.reason else ""
        if not decided.confirmed:
            return f"rejects {tool} {by}{reason}"
        changed = f", with {call_arguments.arguments_line(decided.args)}" if decided.args is not None else ""
        payload = f", {_payload_text(decided.payload)}" if decided.payload is not None else ""
        return f"approves {tool} {by}{changed}{payload}{reason}"
    if response.name == CREDENTIAL_REQUEST:
        return "refuses the request" if refusal(values) else "answers the request"
    if interrupt and interrupt.kind == "node_approval":
        return f"{verdict_of(interrupt, values).state} {_payload_line(interrupt)}"
    return answer_text(answered_value(response))


def decision_origin(response: types.FunctionResponse) -> str:
    """The origin of a decision, as `by a click`; empty for any other answer."""
    if response.name != APPROVAL_REQUEST:
        return ""
    by = read_answer(response.response or {}).by
    return f"by {one_line(by, 100)}" if by else "by a function response"
