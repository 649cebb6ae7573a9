"""Every error this package raises on purpose.

    AdkNbError
      UserError                    mend it in a cell; printed as one line, no traceback into this package
        ConfigurationError         an agent, tool or run was put together wrongly
          WorkflowConfigurationError
        WorkflowDataError          a graph's node was given, or gave, what it cannot take
        InputError                 unknown option, empty body, a name or an argument that cannot be
        MissingExtraError          an optional package is not installed
        MissingKeyError            a model needs a key and none is set
        StateKeyError              an instruction names a state key that is not there
        StateSchemaError           a write that the state's schema does not allow
        PendingError               an approval is open and has to be answered first
        NotFoundError              a name or id that nothing answers to
          SessionNotFoundError
          AgentNotFoundError
          ToolNotFoundError
          ModelNotFoundError
          InvocationNotFoundError
        SessionBusyError           another run works on the session
        TurnFailedError            a turn of a cell ended with an error, and such cells are to fail
        StorageError               a disk or a database did not do what it was asked
        RecordingMismatchError     a replayed model was asked what was never recorded
      AlreadyExistsError           a session, or an event, with this id is there
      StaleSessionError            another wrote to the session since it was read
      ModelError                   the model's service failed, or answered what cannot be used
        ModelHTTPError
          ServiceRefused           one's own service over HTTP: HTTP_<status>
        ModelTimeoutError
        ServiceUnreachable         HTTP_CONNECTION
        UnexpectedModelAnswer
          InvalidResponse          INVALID_RESPONSE
      CredentialError              a service did not give a token for what it was shown
      NodeTimeoutError             a graph's node took too long
      LlmCallsLimitExceededError   one invocation asked the model too often
      PluginError                  a plugin's hook raised, or did not close

One rule for messages: what happened, the names and values involved, what to do next.
"""

from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import Any


class AdkNbError(Exception):
    """The root: `except AdkNbError` catches everything this package means to raise."""

    @property
    def code(self) -> str:
        """What an error event of this error carries as `error_code`."""
        return type(self).__name__


class UserError(AdkNbError):
    """Something the notebook's author can mend in a cell."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this instead of printing a traceback into this package's own files."""
        return ["; ".join([f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())])]


class ConfigurationError(UserError, ValueError):
    """An agent, a tool or a run was put together wrongly. Also a ValueError, as in ADK."""


class InputError(UserError, ValueError):
    """What was typed or passed in cannot be used."""


class MissingExtraError(UserError, ImportError):
    """An optional package is not installed; the message is the command that installs it."""


class CloudServiceError(UserError, ImportError):
    """A name of ADK's that stands for a service of Google Cloud, which this package has no client for."""


class MissingKeyError(UserError):
    """A model needs a key and none is set."""


class StateKeyError(UserError, KeyError):
    """An instruction names a state key or an artifact that is not there."""

    __str__ = Exception.__str__  # KeyError would print the message in quotes

    @property
    def code(self) -> str:
        """`KeyError`: ADK's code for the same mistake."""
        return "KeyError"


class StateSchemaError(UserError, TypeError):
    """A key or a value that the `state_schema` does not allow was written to the state. Also a TypeError, as in ADK."""


class PendingError(UserError):
    """An approval is open, and this needs it answered first."""


class WorkflowConfigurationError(ConfigurationError):
    """A graph that could not be run, or whose run came to more than one end."""


class WorkflowDataError(UserError, ValueError):
    """A node was given what it cannot take, or gave what it must not."""


class NotFoundError(UserError):
    """A name or id that nothing answers to."""

    def __init__(self, kind: str, name: str, known: Iterable[str] = (), *, hint: str = "") -> None:
        """`hint`: what to do next, put at the end of the sentence."""
        self.kind = kind
        self.name = name
        self.known = sorted(known)
        said = self._message(hint)
        between = " " if said.endswith("?") else "; "
        super().__init__(said + (between + hint if hint else ""))

    def _message(self, hint: str) -> str:
        said = f"no {self.kind} named {self.name!r}"
        if close := closest(self.name, self.known):
            return f"{said}; did you mean {close!r}?"
        if self.known:
            return f"{said}; there is: {', '.join(self.known)}"
        return said if hint else f"{said}; there is none yet"


class SessionNotFoundError(NotFoundError):
    """The session service has no such session."""


class AgentNotFoundError(NotFoundError):
    """No agent goes by that name."""


class ToolNotFoundError(NotFoundError):
    """No tool goes by that name."""


class ModelNotFoundError(NotFoundError, ValueError):
    """No class of models answers to that name. Also a ValueError, as in ADK."""


class InvocationNotFoundError(NotFoundError):
    """The session has no such invocation."""


class SessionBusyError(UserError):
    """Another run works on the session, and nothing else writes to it until that run has ended."""

    def __init__(self, session_id: str, owner: str, since: float, hint: str = "") -> None:
        """`owner`: who runs it, in the words it gave when it began; `since`: seconds since the epoch, UTC. `hint`: what
        to do, if it is not to wait for the end of the other.
        """
        self.session_id = session_id
        self.owner = owner
        self.since = since
        began = datetime.fromtimestamp(since).astimezone().isoformat(" ", "seconds")
        super().__init__(
            f"session {session_id!r} is in use by {owner} since {began}; {hint or 'wait for its end, or stop it there'}"
        )


class TurnFailedError(UserError):
    """A turn ended with an error, and `%config AdkNb.on_error` says that its cell is to fail then."""


class StorageError(UserError):
    """A disk or a database did not do what it was asked; nothing was half written."""


class RecordingMismatchError(UserError):
    """A replayed model was asked something that was never recorded."""


class AlreadyExistsError(AdkNbError):
    """A session with this id is there already, or another event of the session has this id."""


class StaleSessionError(AdkNbError):
    """Another wrote to the session since this copy of it was read, or took over the run that held it."""


class ModelError(AdkNbError):
    """The model's service failed, or answered what cannot be used."""

    attempts: tuple[Any, ...] = ()
    """The `models.attempts.Attempt`s before the one that failed for good, oldest first."""


class ModelHTTPError(ModelError):
    """The service refused the request."""

    def __init__(self, status: int, body: str, model: str, *, hint: str = "") -> None:
        self.status = status
        self.body = body
        self.model = model
        said = f"the service of model {model!r} answered HTTP {status}: {body[:500]}"
        super().__init__(said + (f"; {hint}" if hint else ""))


class ModelTimeoutError(ModelError):
    """The service did not answer in time."""


class ModelConnectionLost(ModelError):
    """A live conversation's connection broke; it can be taken up again where the service gave a handle for that."""


class UnexpectedModelAnswer(ModelError):
    """The model answered something the loop cannot use."""


class ServiceRefused(ModelHTTPError):
    """A service of one's own (`HttpLlm`) answered with a status that is no success."""

    retry_after: float | None = None
    """Seconds that the service asked to wait."""

    @property
    def code(self) -> str:
        """`HTTP_503`."""
        return f"HTTP_{self.status}"


class ServiceUnreachable(ModelError):
    """A service of one's own gave no answer: no connection, a broken one, or none in time."""

    @property
    def code(self) -> str:
        """The same for every one."""
        return "HTTP_CONNECTION"


class InvalidResponse(UnexpectedModelAnswer):
    """A service of one's own answered what is not the contract's."""

    @property
    def code(self) -> str:
        """The same for every one."""
        return "INVALID_RESPONSE"


class CredentialError(AdkNbError):
    """A service gave no token for what it was shown. The message tells no secrets."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        """`refused`: it said no, and will say so again; False: it could not be asked."""
        self.refused = refused
        super().__init__(message)


class LlmCallsLimitExceededError(AdkNbError):
    """One invocation asked the model more often than `RunConfig.max_llm_calls` allows."""


class ThreadsExhaustedError(AdkNbError, RuntimeError):
    """Every worker thread is kept by a function that nobody waits for any more."""


class NodeTimeoutError(AdkNbError, TimeoutError):
    """A node of a graph took longer than its `timeout`."""


class PluginError(AdkNbError, RuntimeError):
    """A plugin's hook raised, or it did not close; `__cause__` is what it raised. Also a RuntimeError, as in ADK."""

    @property
    def code(self) -> str:
        """`RuntimeError`: ADK's code for the same."""
        return "RuntimeError"


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name most like `name`, if one is like it: at least by `cutoff`, 1 being the same."""
    folded = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None
