"""A request for a credential as a reader sees it: who needs it, a link to open, and what to type."""

from urllib.parse import quote, urlsplit

from adk_nb.auth.auth_schemes import APIKey, HTTPBase
from adk_nb.notebook.view.markdown import markdown_cell
from adk_nb.notebook.view.plain_text import name_text, one_line
from adk_nb.notebook.view.safe_html import LINK_REL, Html, code, element, is_safe_link
from adk_nb.notebook.view.view_state import Json
from adk_nb.runtime.interrupts import Interrupt

_KEPT = ":/?#[]@!&*+,;=%~-._"
"""Characters of an address that mean nothing to a page, or to markdown."""


def way(magic: str) -> str:
    """What to type. `magic`: empty where only Python has the chat."""
    return "_run.submit_credential()" if magic else "chat.submit_credential()"


def needs(one: Interrupt) -> str:
    """Who needs what, on one line."""
    again = f" ({_again(one)})" if one.problem else ""
    return f"{_tools(one)} needs {_what(one)}{again}"


def _again(one: Interrupt) -> str:
    return f"asked again: {one_line(one.problem, 300)}"


def _tools(one: Interrupt) -> str:
    return ", ".join(dict.fromkeys(name_text(waiting.call.name) for waiting in one.calls))


def _what(one: Interrupt) -> str:
    scheme = one.auth_scheme
    if isinstance(scheme, APIKey):
        return f"the key for {scheme.in_.value} {one_line(scheme.name, 100)}"
    if isinstance(scheme, HTTPBase):
        return "name:password" if _is_basic(scheme) else f"a {one_line(scheme.scheme, 100)} token"
    return "to be let in"


def _is_basic(scheme: HTTPBase) -> bool:
    return scheme.scheme.lower() == "basic"


def card(one: Interrupt, twin: str) -> Json:
    """A card of the live view. What is typed into its fields, joined by colons, is the answer."""
    return {
        "id": one.id,
        "kind": "credential",
        "agent": one_line(one.agent, 100),
        "tool": _tools(one),
        "needs": "a name and a password" if _what(one) == "name:password" else _what(one),
        "link": link(one) or "",
        "fields": _fields(one),
        "how": twin,
        "state": "asked",
        "note": _again(one) if one.problem else "",
    }


def _fields(one: Interrupt) -> list[Json]:
    scheme = one.auth_scheme
    if one.auth_uri:
        hint = "of the page that you are led to, even where it says that it cannot be reached"
        return [{"label": "address", "hint": hint, "secret": False}]
    if isinstance(scheme, HTTPBase) and _is_basic(scheme):
        return [{"label": "name", "hint": "", "secret": False}, {"label": "password", "hint": "", "secret": True}]
    return [{"label": "key" if isinstance(scheme, APIKey) else "token", "hint": "", "secret": True}]


def link(one: Interrupt) -> str | None:
    """The address to open, safe to be clicked; None if there is none."""
    uri = quote(one.auth_uri or "", safe=_KEPT)
    return uri if urlsplit(uri).scheme in ("http", "https") and is_safe_link(uri) else None


def plain(one: Interrupt, twin: str) -> list[str]:
    """Lines of text. `twin`: what to type."""
    return [needs(one), *([f"    open {uri}"] if (uri := link(one)) else []), f"    {_then(one)} {twin}"]


def markdown(one: Interrupt, twin: str) -> list[str]:
    """Blocks of markdown."""
    opened = [f"Open [this page]({uri})."] if (uri := link(one)) else []
    return [f"**{markdown_cell(needs(one))}**", " ".join([*opened, f"{_then(one).capitalize()} `{twin}`."])]


def html(one: Interrupt, twin: str) -> list[Html]:
    """Paragraphs."""
    uri = link(one)
    opened = ["Open ", element("a", "this page", href=uri, rel=LINK_REL), ". "] if uri else []
    typed = [f"{_then(one).capitalize()} ", element("code", code(twin)), "."]
    return [element("p", element("strong", needs(one))), element("p", *opened, *typed)]


def _then(one: Interrupt) -> str:
    return "then paste the address it leads to into" if one.auth_uri else "type it into the field of"
