"""Every error this package raises on purpose.

A UserError is fixed in a cell and printed as one line, without a traceback; all others keep theirs.
Every message says what happened, with names and values, and what to do next.
"""

from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any


class AdkNbError(Exception):
    """The base class of all errors that this package raises on purpose."""

    @property
    def code(self) -> str:
        """The `error_code` of the error's event."""
        return type(self).__name__

    @property
    def message(self) -> str:
        """The text of the error, as ADK's errors have it."""
        return str(self)


class UserError(AdkNbError):
    """An error that the notebook's author can fix in a cell."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this instead of printing a traceback into this package's own files."""
        return ["; ".join([f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())])]


class ConfigurationError(UserError, ValueError):
    """An agent, a tool or a run is configured wrongly. Also a ValueError, as in ADK."""


class InputError(UserError, ValueError):
    """An invalid argument, option, name or message."""


class MissingExtraError(UserError, ImportError):
    """An optional package is not installed; the message is the command that installs it."""


class CloudServiceError(UserError, ImportError):
    """A name in ADK for a client of a Google Cloud service, which this package does not have."""


class MissingModuleError(UserError, ModuleNotFoundError):
    """A module or a name of ADK that this package does not have; the message says what to use."""


class MissingKeyError(UserError):
    """A model needs an API key and none is set."""


class StateKeyError(UserError, KeyError):
    """An instruction names a state key or an artifact that does not exist."""

    def __init__(self, message: str, key: str = "") -> None:
        """`key`: the key of the state."""
        super().__init__(message)
        self.key = key

    __str__ = Exception.__str__  # KeyError would print the message in quotes

    @property
    def code(self) -> str:
        """`KeyError`: ADK's code for the same mistake."""
        return "KeyError"


class StateSchemaError(UserError, TypeError):
    """A key or a value that the `state_schema` does not allow was written to the state. Also a TypeError, as in ADK."""


class PendingError(UserError):
    """An approval is open and must be answered first."""

    is_on_card = False
    """True: the cell shows a card of it, which says so until it is answered."""


class WorkflowConfigurationError(ConfigurationError):
    """A graph that cannot run, or whose run had more than one output."""


class WorkflowDataError(UserError, ValueError):
    """Invalid input or output of a graph's node."""


class NotFoundError(UserError):
    """An unknown name or id; the message has the closest known name."""

    def __init__(self, kind: str, name: str | None = None, known: Iterable[str] = (), *, hint: str = "") -> None:
        """`known`: the existing names. `hint`: what to do next, at the end of the message.

        Without a name, `kind` is the whole message: ADK's errors are raised so.
        """
        self.kind = kind
        self.name = name or ""
        self.known = sorted(known)
        message = kind if name is None else self._message(hint)
        separator = " " if message.endswith("?") else "; "
        super().__init__(message + (separator + hint if hint else ""))

    def _message(self, hint: str) -> str:
        message = f"no {self.kind} named {self.name!r}"
        if close := closest(self.name, self.known):
            return f"{message}; did you mean {close!r}?"
        if self.known:
            return f"{message}; there is: {', '.join(self.known)}"
        return message if hint else f"{message}; there is none yet"


class SessionNotFoundError(NotFoundError, ValueError):
    """The session service has no such session. Also a ValueError, as in ADK."""


class AgentNotFoundError(NotFoundError):
    """Unknown agent name."""


class ToolNotFoundError(NotFoundError):
    """Unknown tool name."""


class ModelNotFoundError(NotFoundError, ValueError):
    """No model class matches the name. Also a ValueError, as in ADK."""


class InvocationNotFoundError(NotFoundError):
    """The session has no such invocation."""


class SessionBusyError(UserError):
    """Another run holds the session; no other run may write to it before its end."""

    def __init__(self, session_id: str, owner: str, since: float, hint: str = "") -> None:
        """`owner`: a process. `since`: seconds since the epoch, UTC. `hint`: what to do, instead of waiting."""
        self.session_id = session_id
        self.owner = owner
        self.since = since
        started = datetime.fromtimestamp(since).astimezone().isoformat(" ", "seconds")
        hint = hint or "wait for its end, or stop it there"
        super().__init__(f"session {session_id!r} is in use by {owner} since {started}; {hint}")


class TurnFailedError(UserError):
    """A turn failed, and `%config AdkNb.on_error` makes its cell fail."""


class EvaluationFailedError(UserError):
    """An evaluation's score is below the `--min` of its cell."""


class StorageError(UserError):
    """A disk or a database failed; nothing was partly written."""


class RecordingMismatchError(UserError):
    """A replayed model got a request that was not recorded."""


class AlreadyExistsError(AdkNbError):
    """A session with this id, or an event with this id in the session, exists."""


class StaleSessionError(AdkNbError):
    """Another process changed the session since it was read, or took over its lease."""


class ModelError(AdkNbError):
    """The model's service failed, or sent an invalid response."""

    attempts: tuple[Any, ...] = ()
    """The `models.llm_response.Attempt`s before the one that failed for good, oldest first."""


class ModelHTTPError(ModelError):
    """The service refused the request."""

    def __init__(self, status: int, body: str, model: str, *, hint: str = "") -> None:
        self.status = status
        self.body = body
        self.model = model
        message = f"the service of model {model!r} answered HTTP {status}: {body[:500]}"
        super().__init__(message + (f"; {hint}" if hint else ""))


class ModelTimeoutError(ModelError):
    """The service did not answer in time."""


class ModelConnectionLost(ModelError):
    """The connection of a live conversation was lost; with a handle from the service it can be resumed."""


class UnexpectedModelAnswer(ModelError):
    """The model sent an invalid response."""


class ServiceRefused(ModelHTTPError):
    """A custom service (`HttpLlm`) answered with an error status."""

    retry_after: float | None = None
    """Seconds to wait, as the service's header says."""

    @property
    def code(self) -> str:
        """`HTTP_503`."""
        return f"HTTP_{self.status}"


class ServiceUnreachable(ModelError):
    """A custom service gave no answer: no connection, a lost connection, or a timeout."""

    @property
    def code(self) -> str:
        """`HTTP_CONNECTION`."""
        return "HTTP_CONNECTION"


class InvalidResponse(UnexpectedModelAnswer):
    """A custom service sent a response that is not in the documented format."""

    @property
    def code(self) -> str:
        """`INVALID_RESPONSE`."""
        return "INVALID_RESPONSE"


class A2AClientError(AdkNbError):
    """A remote agent did not answer, refused the message, or failed."""

    task_id: str | None = None
    """Id of the remote task, which failed or may still be running. None: unknown."""


class A2AConnectionError(A2AClientError):
    """A remote agent was not reached, or sent nothing for too long; its task may still be running."""


class AgentCardResolutionError(A2AClientError):
    """A remote agent's card was not found, or lists no interface that can be called."""


class CredentialError(AdkNbError):
    """A service gave no token for a credential. The message has no secrets."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        """`refused`: the service refused, so a retry is useless; False: it was not reached."""
        self.refused = refused
        super().__init__(message)


class ToolErrorType(StrEnum):
    """What went wrong in a tool, in the words of HTTP."""

    BAD_REQUEST = "BAD_REQUEST"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT"
    INTERNAL_SERVER_ERROR = "INTERNAL_SERVER_ERROR"
    BAD_GATEWAY = "BAD_GATEWAY"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    GATEWAY_TIMEOUT = "GATEWAY_TIMEOUT"


class ToolExecutionError(AdkNbError):
    """A tool failed; tools raise it to say how in the span of the call."""

    def __init__(self, message: str, error_type: ToolErrorType | str | None = None) -> None:
        """`error_type`: the span's `error.type`; the class's name if None."""
        self.error_type = error_type.value if isinstance(error_type, ToolErrorType) else error_type
        super().__init__(message)


class LlmCallsLimitExceededError(AdkNbError):
    """More model calls in one invocation than `RunConfig.max_llm_calls`."""


class ThreadsExhaustedError(AdkNbError, RuntimeError):
    """All worker threads are busy with abandoned functions."""


class NodeTimeoutError(AdkNbError, TimeoutError):
    """A node of a graph took longer than its `timeout`."""


class PluginError(AdkNbError, RuntimeError):
    """A plugin's hook raised, or the plugin did not close; see `__cause__`. Also a RuntimeError, as in ADK."""

    @property
    def code(self) -> str:
        """`RuntimeError`: ADK's code for the same error."""
        return "RuntimeError"


def closest(name: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The most similar known name, ignoring case. None: no similarity reaches `cutoff` (0 to 1)."""
    folded = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(name.lower(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """The end of an error for an unknown name: `did you mean 'x'?`, or `otherwise` if no candidate is similar."""
    near = closest(name, candidates)
    return f"did you mean {near!r}?" if near else otherwise


def yaml_reason(error: Exception) -> str:
    """The reason why PyYAML cannot read a text, without the position; with a hint for the most common mistake."""
    reason = getattr(error, "problem", None) or str(error)
    # PyYAML's message for `description: Trips: by bus`.
    return f"{reason}; put a text with ': ' in quotes" if reason == "mapping values are not allowed here" else reason
