"""The live view: one widget that shows a run as rows come in, and passes clicks on; and the page that it is in."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ipywidgets and ipykernel have no annotations here

import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import anywidget
import ipywidgets
import traitlets
from IPython.core.getipython import get_ipython

from adk_nb.concurrency.threads import IN_A_BROWSER, repeat
from adk_nb.errors import InputError
from adk_nb.notebook.view.call_arguments import editable_call, full_alike_values, full_values
from adk_nb.notebook.view.cards import answer_of
from adk_nb.notebook.view.panels import listed
from adk_nb.notebook.view.view_state import Json, ViewState, card_is_open, is_op

VIEW_MIME = "application/vnd.jupyter.widget-view+json"


_FIELDS = {"need": ("what", "id"), "rerun": ("event",), "state": ("key", "text")}
_FIELDS_OF_BOX = {"again": ("event", "text"), "session": ("name",), "file": ("id", "data")}


class _Page:
    keeps_out: bool | None = None
    """True if it leaves views out of the saved file. None: no page has reported."""


_page = _Page()


def set_page(*, keeps_out: bool) -> None:
    """Note whether the page leaves views out of the saved file."""
    _page.keeps_out = keeps_out


def request_of(message: Json) -> Json | None:
    """The request in a page's message, checked.

    Returns:
        `{"kind": "need", "what", "id"}`, `{"kind": "rerun", "event"}`, `{"kind": "state", "key", "text"}` (`text`
        None: remove the key), and in a chat box `{"kind": "again", "event", "text"}` (`text` None: the same),
        `{"kind": "session", "name"}` or `{"kind": "file", "id", "data"}`; None for anything else.
    """
    # Untrusted: any script on the page can send messages of a widget.
    fields = (_FIELDS | _FIELDS_OF_BOX).get(str(message.get("kind")))
    if fields is None:
        return None
    request = {name: message.get(name) for name in fields}
    if message["kind"] == "need":
        request["id"] = request["id"] or ""
    is_text = all(isinstance(value, str) or (name == "text" and value is None) for name, value in request.items())
    return {"kind": message["kind"], **request} if is_text else None


def views_stay() -> bool:
    """True if a view may stay after its run, since the front end leaves it out of the saved file.

    A saved view would be shown as "model not found" without its kernel. Until a page reports, JupyterLab and Notebook
    are assumed to leave views out, and no other front end. Source of the variable: jupyter_server 2, `SessionManager`;
    VS Code names its sessions with `-jvsc-`.
    """
    if _page.keeps_out is not None:
        return _page.keeps_out
    session = "JupyterLite" if IN_A_BROWSER else os.environ.get("JPY_SESSION_NAME", "")
    return bool(session) and "-jvsc-" not in session


def with_view(bundle: dict[str, str], model_id: str, phase: Literal["page", "run"] = "page") -> Any:
    """An output with a view for the page, and `bundle` for the saved file.

    Args:
        bundle: By media type.
        model_id: Of the view; empty: there is none.
        phase: `run`: the run is not over; a reloaded page shows the view again if the kernel lives.
    """
    if not model_id:
        return bundle
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    # Jupyter shows the richest known media type: the view wins while its kernel lives.
    return {**bundle, VIEW_MIME: view}, {VIEW_MIME: {"adk_nb": phase}}


_REQUESTS = ("kernel_info_request", "comm_info_request")
_WIDGETS = "jupyter.widget.control"
"""Target of the comm that asks for the state of all widgets, as ipywidgets 8 has it."""


class SideShell:
    """Answers the first requests of a page while a cell runs, in a subshell. One for each kernel.

    Source: ipykernel 7, `Kernel.shell_channel_thread_main` and `SubshellManager`; the names are private. A kernel
    without them answers when the cell has ended.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._thread = kernel.shell_channel_thread
        self._id = ""
        self._comms: set[str] = set()
        """Ids of comms that ask for the state of all widgets."""
        self.runs: set[object] = set()
        """Live runs."""
        # On the channel's own loop: a zmq stream belongs to one thread.
        self._thread.io_loop.add_callback(kernel.shell_stream.on_recv, self._received, copy=False)

    async def _received(self, frames: list[Any]) -> None:
        """Runs on the thread of the shell channel."""
        if self.runs:
            try:
                session = self._kernel.session
                identities, rest = session.feed_identities(frames, copy=False)
                message = session.deserialize(rest, content=False, copy=False)
                # JEP 91: else the front end has chosen a subshell.
                if not message["header"].get("subshell_id") and self._answers(message):
                    self._id = self._id or self._thread.manager._create_subshell()
                    header = {**message["header"], "subshell_id": self._id}
                    content = session.unpack(message["content"])
                    routed = {**message, "header": header, "content": content}
                    # Signed again: the HMAC covers the header, which has changed.
                    parts = session.serialize(routed, ident=[bytes(identity) for identity in identities])
                    frames = list(map(type(frames[0]), [*parts, *message["buffers"]]))
            except Exception:  # the main shell reports the error
                logger.debug("the side shell cannot take a message", exc_info=True)
        await self._kernel.shell_channel_thread_main(frames)

    def _answers(self, message: Any) -> bool:
        kind = message["header"]["msg_type"]
        if kind in _REQUESTS:
            return True
        if kind not in ("comm_open", "comm_msg", "comm_close"):
            return False
        content = self._kernel.session.unpack(message["content"])
        if kind == "comm_open" and content.get("target_name") == _WIDGETS:
            self._comms.add(content["comm_id"])
        return content.get("comm_id") in self._comms


def side_shell() -> SideShell | None:
    """The side shell of this kernel; None if it cannot have one."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    if not hasattr(getattr(kernel, "shell_channel_thread", None), "manager"):
        return None
    if (shell := getattr(kernel, "_adk_nb_side_shell", None)) is None:
        shell = kernel._adk_nb_side_shell = SideShell(kernel)
    return shell


logger = logging.getLogger(__name__)

FIRST_SECONDS = 0.01
"""Between batches until an agent has its first row, for which the reader waits."""
BATCH_SECONDS = 0.04
"""Between the first batches of a text that streams."""
BATCH_GROWTH = 1.06
"""The next one of the same text comes later by this factor, so that a long text is few messages."""
BATCH_SECONDS_MOST = 0.25
ROWS_SECONDS = 0.1
"""Between batches otherwise."""
OPS_SHARE = 10
"""Pause after a batch, as a multiple of the time it took to render."""
SNAPSHOT_SECONDS = 1.0
SNAPSHOT_SHARE = 50
"""Pause after a snapshot, as a multiple of the time it took to write: snapshots take at most 2 % of a run."""
SNAPSHOT_BATCHES = 8
"""Pause after a snapshot, as a multiple of that between two batches of text: it has all of the text again."""
STUB = {"text/plain": "", "text/html": ""}
"""Output in the place of a view: empty, and the same in every run, so that saved notebooks compare equal."""

STATIC = Path(__file__).parent / "static"


def _bundle(name: str) -> str:
    """A file that `make bundle` writes from `static/src`."""
    return (STATIC / name).read_text(encoding="utf-8")


class ViewCode(ipywidgets.Widget):
    """The code of all views of a kernel: a page loads it once, however many views it has."""

    version = traitlets.Unicode().tag(sync=True)
    """Of `js` and `css`: a page that knows it does not load them again."""
    js = traitlets.Unicode().tag(sync=True)
    css = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        js, css = _bundle("view.js"), _bundle("view.css")
        super().__init__(version=hashlib.sha256((js + css).encode()).hexdigest(), js=js, css=css)


_codes: list[ViewCode] = []
_code_lock = threading.Lock()


def code_of_views() -> str:
    """The id of the model of the views' code."""
    with _code_lock:
        # `Widget.close_all()` closes it as well; new views then need a new one.
        if not _codes or _codes[0].comm is None:
            _codes[:] = [ViewCode()]
        return _codes[0].model_id


class PageView(anywidget.AnyWidget):
    """An output whose folded parts can be copied."""

    _esm = _bundle("loader.js")
    code = traitlets.Unicode().tag(sync=True)
    html = traitlets.Unicode().tag(sync=True)
    """As in the saved notebook."""

    def __init__(self, html: str) -> None:
        super().__init__(code=code_of_views(), html=html)


class LiveView(anywidget.AnyWidget):
    """One view of one run, fed with ops from any thread.

    Ops are plain JSON (see `push`). They leave in batches, the first at once, then 10 ms after each until the agent has
    a row, 40 to 250 ms after streaming text and 100 ms after others, so that a stream of tokens never meets the
    server's limit of messages; the whole state follows about once a second as `snapshot`, for pages that were reloaded
    or missed a batch.
    """

    _esm = _bundle("loader.js")
    code = traitlets.Unicode().tag(sync=True)
    """Id of the model of the views' code."""
    panels = traitlets.List(traitlets.Dict()).tag(sync=True)
    """`{"name", "title"}` of each panel, and `module` (an ES module) of those from outside this package."""
    snapshot = traitlets.Dict().tag(sync=True)
    """The last `ViewState.snapshot`; its `seq` is the number of the last batch that it includes."""

    def __init__(self, title: str = "", box: Json | None = None, model: str = "") -> None:
        own_id = secrets.token_hex(16)
        self._state = ViewState(title, box, own_id, model)
        self._seq = 0
        self._pause = BATCH_SECONDS
        self._text_pause = BATCH_SECONDS
        self._awaits_first_row = False
        self._pending: list[Json] = []
        self._pending_text: dict[str, Json] = {}
        self._is_ticking = False
        self._lock = threading.Lock()  # guards the pending ops
        self._sending = threading.RLock()  # guards the order of batches, and the state after them
        self._snapshot_due = 0.0
        self._listeners: list[Callable[[Json], None]] = []
        super().__init__(model_id=own_id, code=code_of_views(), panels=listed(), snapshot=self._state.snapshot(0))
        answer_on_the_front_ends_subshell(self.comm)
        if self.comm:
            # comm's own `BaseComm.handle_msg` (comm 0.2) triggers IPython's pre_execute and post_execute for each
            # message; matplotlib-inline then draws and closes the figures that a running tool is still drawing.
            self.comm.handle_msg = self._handle_msg
        self.on_msg(self._receive)

    def push(self, op: Json) -> None:
        """Show one more op soon; safe and cheap from any thread, in the order of the calls.

        Args:
            op: Plain JSON values, copied one level deep. One of
                `{"op": "append", "row": {"id", "author", "kind", ...}}` (kind: user, text, thought, call, error,
                marker), `{"op": "text", "id", "s"}` (a streamed piece of that row's text; markdown, if its `html` is
                not None), `{"op": "patch", "id", **fields}`, `{"op": "state", "event", "changes"}` (the first one also
                has the whole `state`), `{"op": "card", "card": {"id", ...}}` (its fields are merged into the card; an
                answered card stays answered unless it is asked again with a note; the page gets it from
                `call_arguments.card_for_page`), `{"op": "status", "status", "text"}`, `{"op": "usage", "text",
                "title", "tokens"}` (for the footer), `{"op": "model", "name"}` (for the head), `{"op": "notice",
                "text"}`, `{"op": "notices", "notices"}` (each a `document.Notice` as a dict), `{"op": "drawing",
                "drawing"}` (as `panels.graph.live_drawing`), `{"op": "mark", "marks"}` (as `drawing_path.Marks`,
                merged into the earlier marks), `{"op": "lane",
                "lane": {"id", "name", "label", "state"}}` (an agent of several that work at once; the `lane` of a row
                is such an id), `{"op": "artifact", "artifact": {"id", ...}}` (as `results.artifact`, replacing the one
                with that id), `{"op": "offers", "what"}` (requests that the page may send), `{"op": "clear"}` (of a
                chat box, which shows another session), `{"op": "box", "box"}` (fields of a chat box, merged into the
                earlier ones), `{"op": "answer", "answer": {"question", "members", "who", "html", "pages"}}` (of a run
                that is over), `{"op": "panel", "name", "id", "data"}` (the response to a page's request; snapshots
                leave it out).

        Raises:
            ValueError: There is no such op.
        """
        if not is_op(op["op"]):
            raise ValueError(f"a live view knows no op {op['op']!r}")
        with self._lock:
            self._queue(op)
            if not self._is_ticking:
                self._is_ticking = True
                repeat(self._tick, name="adk-nb-view")

    @contextmanager
    def in_one_batch(self) -> Generator[None]:
        """Within this, keep all ops that are pushed until the next `flush`, unless a batch is on its way already."""
        with self._lock:
            was_ticking, self._is_ticking = self._is_ticking, True
        try:
            yield
        finally:
            with self._lock:
                if not was_ticking:  # else the batches that were under way know when they end
                    self._is_ticking = False
            self.flush()

    def flush(self) -> None:
        """Send pending ops now."""
        with self._sending:
            with self._lock:
                batch, self._pending, self._pending_text = self._pending, [], {}
            if not batch:
                return
            began = time.monotonic()
            ops: list[Json] = []
            for op in batch:
                try:
                    if for_page := self._state.apply(op):
                        ops.append(for_page)
                except (KeyError, TypeError, AttributeError):  # one malformed op must not lose its batch
                    logger.exception("a live view cannot show the op %r", op["op"])
            # Slow renderings come less often, so that the run keeps the interpreter lock.
            self._pause = max(self._pause_after(ops), OPS_SHARE * (time.monotonic() - began))
            self._seq += 1
            self.send({"kind": "ops", "seq": self._seq, "ops": ops})

    def close_run(self) -> None:
        """Send pending ops and the whole state, when a run ends or pauses. Later pushes are allowed."""
        self.flush()
        self._write_snapshot()

    def on_answer(self, listener: Callable[[Json], None]) -> None:
        """Call `listener` with each message from a page.

        Args:
            listener: Called on any thread, where prints and displays are lost, so it should only schedule work. It
                gets `{"kind": "answer", "id", "value"}`, once per card however often it is clicked (see `answer_of`),
                `{"kind": "stop"}`, `{"kind": "approve", "ids"}` of cards that are approved together, what
                `request_of` returns, or, in a chat box, `{"kind": "ask", "text", "attach"}` and
                `{"kind": "file", "id", "data"}` (both for `attachments.Uploads`).
        """
        self._listeners.append(listener)

    def _repr_mimebundle_(self, **_: Any) -> tuple[Json, Json]:
        return with_view(STUB, self.model_id, "run")

    def _pause_after(self, ops: list[Json]) -> float:
        for op in ops:
            if op["op"] == "status" and op["status"] == "running":
                self._awaits_first_row = True
            elif op["op"] in ("text", "patch") or (op["op"] == "append" and op["row"]["kind"] != "user"):
                self._awaits_first_row = False
        if self._awaits_first_row:
            return FIRST_SECONDS
        if not any(op["op"] == "text" for op in ops):
            self._text_pause = BATCH_SECONDS
            return ROWS_SECONDS
        pause, self._text_pause = self._text_pause, min(BATCH_SECONDS_MOST, self._text_pause * BATCH_GROWTH)
        return pause

    def _queue(self, op: Json) -> None:
        if op["op"] != "text":
            self._pending.append(op)
            # Text after this op must not be joined to text before it.
            self._pending_text.pop(op.get("id", ""), None)
            return
        piece = self._pending_text.get(op["id"])
        if piece is not None:
            piece["s"] += op["s"]
            return
        # A copy: later text is added to it, and the caller's op must stay as it was.
        piece = dict(op)
        self._pending.append(piece)
        self._pending_text[op["id"]] = piece

    def _tick(self) -> float | None:
        """Send a batch. Returns the pause before the next; None: no op is pending and the snapshot is up to date."""
        try:
            self.flush()
            if time.monotonic() >= self._snapshot_due:
                self._write_snapshot()
            # Under the lock of `push`: an op that comes between the check and the flag would start no tick.
            with self._sending, self._lock:
                self._is_ticking = bool(self._pending) or self.snapshot["seq"] != self._seq
        except Exception:  # the run continues without its view; the next op tries again
            logger.exception("a live view could not be sent")
            self._is_ticking = False
        return self._pause if self._is_ticking else None

    def _write_snapshot(self, *, force: bool = False) -> None:
        with self._sending:
            began = time.monotonic()
            if self.snapshot["seq"] != self._seq:
                self.snapshot = self._state.snapshot(self._seq)
            elif force:
                # traitlets sends no equal value, and this page has missed it.
                self.send_state("snapshot")
            now = time.monotonic()
            pauses = SNAPSHOT_SECONDS, SNAPSHOT_SHARE * (now - began), SNAPSHOT_BATCHES * self._text_pause
            self._snapshot_due = now + max(pauses)

    def _receive(self, _: Any, message: Any, __: Any) -> None:
        if not isinstance(message, dict):
            return
        message = cast(Json, message)
        kind = message.get("kind")
        if kind == "resync":
            self.flush()
            self._write_snapshot(force=True)
        elif kind == "stop":
            self._notify({"kind": "stop"})
        elif kind == "answer":
            self._answer(message)
        elif kind == "approve" and isinstance(ids := message.get("ids"), list):
            self._approve([str(key) for key in cast(list[Any], ids)])
        elif kind == "page":
            # From a page, and thus from any script in it: only `True` counts.
            set_page(keeps_out=message.get("stays") is True)
        elif kind in _FIELDS_OF_BOX and not self._state.box:
            return
        elif request := request_of(message):
            card = self._state.cards.get(request["id"]) if request.get("what") == "call" else None
            if card is None:
                self._notify(request)
            else:
                whole = {**editable_call(card), "texts": full_values(card), "alike": full_alike_values(card)}
                self.push({"op": "panel", "name": "call", "id": card["id"], "data": whole})
        elif kind == "ask" and self._state.box and str(message.get("text") or "").strip():
            attached = message.get("attach")
            items = cast(list[Any], attached) if isinstance(attached, list) else []
            self._notify({"kind": "ask", "text": str(message["text"]), "attach": items})

    def _answer(self, message: Json) -> None:
        with self._sending:
            self.flush()
            # With all ops applied: of two clicks the second finds the card answered.
            card = self._state.cards.get(str(message.get("id")))
            if card is None or not card_is_open(card):
                return
            try:
                answered = answer_of(card, message)
            except InputError as error:
                self.push({"op": "card", "card": {"id": card["id"], "note": str(error), "again": card["again"] + 1}})
                self.flush()
                return
            if not answered:
                return
            answer, outcome = answered
            self.push({"op": "card", "card": {"id": answer["id"], **outcome}})
            self.flush()
        self._notify(answer)

    def _approve(self, keys: list[str]) -> None:
        """Approve several cards together, each as it was asked for; none if one of them cannot be by now."""
        with self._sending:
            self.flush()
            cards = [self._state.cards.get(key) for key in dict.fromkeys(keys)]
            open_ = [card for card in cards if card and card_is_open(card)]
            ready = [card for card in open_ if card["kind"] == "approval" and not (card["changed"] or card["alike"])]
            is_whole = len(ready) == len(cards)
            for card in open_:
                answered = answer_of(card, {"decision": "approve"}) if is_whole else None
                again = {"note": "not approved: another one changed, or was answered", "again": card["again"] + 1}
                self.push({"op": "card", "card": {"id": card["id"], **(answered[1] if answered else again)}})
            self.flush()
        if is_whole:
            self._notify({"kind": "approve", "ids": [card["id"] for card in ready]})

    def _notify(self, message: Json) -> None:
        # A copy: a listener may add another one.
        for listener in list(self._listeners):
            try:
                listener(message)
            except Exception as error:
                logger.exception("a listener of a live view raised")
                self.push({"op": "notice", "text": f"this click failed: {type(error).__name__}: {error}"})


def answer_on_the_front_ends_subshell(comm: Any) -> None:
    """Undo ipykernel 7.4's routing of clicks to the shell that sent last: that shell may be the one that blocks.

    Source: ipykernel 7.4 `BaseComm._reply_subshell_for`, called by `Kernel.shell_channel_thread_main` with the message
    and the subshell the front end chose. Other versions have no such attribute.
    """

    def front_ends_subshell(_: Any, subshell: str | None) -> str | None:
        return subshell

    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = front_ends_subshell
