"""What the evaluations of a notebook leave: themselves, cases made of turns, and the sessions of their runs."""

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from adk_nb.concurrency.threads import has_threads
from adk_nb.evaluation.cases import Case
from adk_nb.evaluation.evaluation import Evaluation
from adk_nb.evaluation.temporary_rows import temporary_service
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Journal


@dataclass(frozen=True)
class EvaluationRecord:
    """An evaluation, and the sources of the agent's and its tools' cells at that time."""

    evaluation: Evaluation
    source: str


@dataclass
class Kept:
    """Of one notebook."""

    evaluations: list[EvaluationRecord] = field(default_factory=list[EvaluationRecord])
    """Oldest first."""
    added_cases: dict[str, dict[str, Case]] = field(default_factory=dict[str, dict[str, Case]])
    """Agent -> the cases that were made of turns, by id."""
    temporary: BaseSessionService | None = None


_kept: "WeakKeyDictionary[Notebook, Kept]" = WeakKeyDictionary()


def kept(notebook: Notebook) -> Kept:
    """What the evaluations of a notebook have left so far."""
    return _kept.setdefault(notebook, Kept())


def service_for_rows(notebook: Notebook) -> BaseSessionService:
    """Keeps the runs of evaluations and tables; never in memory, which many runs would fill."""
    service, of = notebook.sessions.service, kept(notebook)
    # Browsers have no threads for a file of their own.
    if isinstance(service, Journal) or not has_threads():
        return service
    of.temporary = of.temporary or temporary_service()
    return of.temporary
