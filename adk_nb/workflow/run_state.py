"""The state of one run of a node: its input, its open interrupts and its output."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.values import from_stored, to_stored

Routes = list[bool | int | str]


@dataclass(kw_only=True)
class RunState:
    """The run `node@number`, running or waiting; `output` and `route` are set when it ended."""

    node: BaseNode
    number: int
    run_id: str | None = None
    """An id in place of the number."""
    author: str
    """Name of the workflow."""
    outer: str
    """Path of the run of the workflow, or of the node that runs this node."""
    caller: Self | None = None
    """The run whose node runs this node. None: the workflow runs it."""
    as_output: bool = False
    """Its output is the caller's."""
    isolation_scope: str | None = None
    """Isolation scope of its events. None: each agent has its own."""
    input: Any
    branch: str | None
    output_for: list[str] = field(default_factory=list[str])
    """Paths of the workflows and callers whose output is this run's output, too."""
    outer_schema: Any = None
    """Output schema of the workflow whose output is this run's."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Interrupt id -> the answer."""
    interrupt_ids: list[str] = field(default_factory=list[str])
    """Ids of its open interrupts."""
    unanswered: list[str] = field(default_factory=list[str])
    """Interrupts that were still open when an answer made it run again."""
    open_request: dict[str, Any] | None = None
    """The subject of its open approval request. None: no request is open."""
    allowed_request: dict[str, Any] | None = None
    """The subject of the approval that it got."""
    attempts_in_doubt: int = 0
    """Interrupted attempts that may have taken effect, for the approver to know."""
    output: Any = None
    has_output: bool = False
    route: Any = None
    inner_counts: dict[str, int] = field(default_factory=dict[str, int])
    """Node name -> the number of times that this node ran it."""
    reported_errors: list[Exception] = field(default_factory=list[Exception])
    """Errors of inner nodes that events have reported."""
    output_source: str | None = None
    """Path of the inner run whose output is also its own."""
    calls_others: bool = False
    """Its agent called other agents, which work on branches of their own."""
    key: str = field(init=False)
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.node.name}@{self.run_id or self.number}"
        self.path = f"{self.outer}/{self.key}"
        if self.as_output and self.caller:
            self.output_for = [self.caller.path, *self.caller.output_for]

    @property
    def waits(self) -> bool:
        return bool(self.interrupt_ids)

    @property
    def reruns_node(self) -> bool:
        """True: after an answer the node runs again. False: the answer is its output."""
        again = self.node.rerun_on_resume or isinstance(self.node, AgentNode)
        return again or self.open_request is not None or bool(self.inner_counts)

    @property
    def routes(self) -> Routes:
        """The chosen routes."""
        route: Any = self.route
        if route is None:
            return []
        return cast(Routes, route) if isinstance(route, list) else [route]

    @property
    def ends_with_output(self) -> bool:
        """True: no event follows its output. False: an agent in it may run other agents after it."""
        return not isinstance(self.node, AgentNode) or isinstance(self.node.agent, LlmAgent)

    def recall(self, ctx: InvocationContext) -> bool:
        """Restore its output and route from the events of the session. False: no event has an output."""
        # All events, as the last output counts.
        for event in history_of(ctx.session).run(ctx.invocation_id):
            info = event.node_info
            if not info.path.startswith(self.path):
                continue
            if event.actions.route is not None and info.path == self.path:
                self.route = event.actions.route
            if self.path in (info.output_for or ()):
                self.output = event.text if event.output is None else event.output
                self.has_output = True
        return self.has_output

    def take(self, answers: Mapping[str, Any]) -> list[str]:
        """Take the answers to its interrupts; return the answered ids."""
        answered = [key for key in self.interrupt_ids if key in answers]
        self.answers |= {key: answers[key] for key in answered}
        self.interrupt_ids = [key for key in self.interrupt_ids if key not in answers]
        return answered

    def as_json(self) -> dict[str, Any]:
        """A waiting run as it is stored."""
        return {
            "node": self.node.name,
            "number": self.number,
            "input": to_stored(self.input),
            "branch": self.branch,
            "answers": dict(self.answers),
            "asked": list(self.interrupt_ids),
            # These keys are stored, so they keep their names.
            "held": self.open_request,
            "let": self.allowed_request,
            "others": dict(self.inner_counts),
        }

    @classmethod
    def of(cls, checkpoint: Mapping[str, Any], node: BaseNode, author: str, outer: str) -> Self:
        """Restore a waiting run from its stored form."""
        number, branch = checkpoint["number"], checkpoint["branch"]
        run = cls(node=node, number=number, author=author, outer=outer, input=None, branch=branch)
        run.restore(checkpoint)
        return run

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore input, interrupts and counts from the stored form of the same run."""
        self.input, self.answers = from_stored(checkpoint["input"]), dict(checkpoint["answers"])
        self.interrupt_ids, self.inner_counts = list(checkpoint["asked"]), dict(checkpoint["others"])
        self.open_request, self.allowed_request = checkpoint["held"], checkpoint["let"]
