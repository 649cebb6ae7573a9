"""Where one run of one node stands: what it was given, what it waits for, and what it came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.kept import as_it_was, kept

Taken = list[bool | int | str]


@dataclass(kw_only=True)
class RunState:
    """The run `node@number`, under way or waiting; afterwards `output` and `route` are there."""

    node: BaseNode
    number: int
    run_id: str | None = None
    """In the place of the number."""
    author: str
    """The workflow."""
    outer: str
    """Path of the workflow's own run, or of the node's that runs it."""
    caller: Self | None = None
    """The run whose node runs it. None: the workflow does."""
    as_output: bool = False
    """Its output is the caller's."""
    isolation_scope: str | None = None
    """Of its events. None: each agent has one of its own."""
    input: Any
    branch: str | None
    output_for: list[str] = field(default_factory=list[str])
    """Paths of the workflows, and the callers, whose output this run's is, too."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Interrupt id -> what was answered."""
    asked: list[str] = field(default_factory=list[str])
    """Ids of the calls that wait for an answer."""
    left: list[str] = field(default_factory=list[str])
    """Those that the answer with which it runs again has left open."""
    held: dict[str, Any] | None = None
    """What a person was asked to let it do, and has not decided. None: nothing."""
    let: dict[str, Any] | None = None
    """What a person has let it do."""
    begun: int = 0
    """How often runs that were cut had begun its work, of which a person is to know."""
    output: Any = None
    has_output: bool = False
    route: Any = None
    others: dict[str, int] = field(default_factory=dict[str, int])
    """How often it has run each node itself, by name."""
    told: list[Exception] = field(default_factory=list[Exception])
    """Errors of nodes that it ran, which events have told of."""
    given_by: str | None = None
    """Path of the run that it has left its output to."""
    calls_others: bool = False
    """Its agent has others work on branches of their own."""
    key: str = field(init=False)
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.node.name}@{self.run_id or self.number}"
        self.path = f"{self.outer}/{self.key}"
        if self.as_output and self.caller:
            self.output_for = [self.caller.path, *self.caller.output_for]

    @property
    def waits(self) -> bool:
        return bool(self.asked)

    @property
    def runs_again(self) -> bool:
        """True: after an answer it is run again. False: the answer is its output."""
        again = self.node.rerun_on_resume or isinstance(self.node, AgentNode)
        return again or self.held is not None or bool(self.others)

    @property
    def taken(self) -> Taken:
        """The routes that it chose."""
        route: Any = self.route
        if route is None:
            return []
        return cast(Taken, route) if isinstance(route, list) else [route]

    @property
    def is_done_with_output(self) -> bool:
        """True: nothing comes after its output. False: an agent in it may have others say more."""
        return not isinstance(self.node, AgentNode) or isinstance(self.node.agent, LlmAgent)

    def recall(self, ctx: InvocationContext) -> bool:
        """Take its output, and its route, from the events that told of them. False: none did."""
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

    def take(self, given: Mapping[str, Any]) -> list[str]:
        """Take the answers that are for it; which of its questions they answer."""
        mine = [one for one in self.asked if one in given]
        self.answers |= {one: given[one] for one in mine}
        self.asked = [one for one in self.asked if one not in given]
        return mine

    def as_json(self) -> dict[str, Any]:
        """What a waiting run is kept as."""
        return {
            "node": self.node.name,
            "number": self.number,
            "input": kept(self.input),
            "branch": self.branch,
            "answers": dict(self.answers),
            "asked": list(self.asked),
            "held": self.held,
            "let": self.let,
            "others": dict(self.others),
        }

    @classmethod
    def of(cls, stood: Mapping[str, Any], node: BaseNode, author: str, outer: str) -> Self:
        """The waiting run that was kept so."""
        return cls(
            node=node,
            number=stood["number"],
            author=author,
            outer=outer,
            input=as_it_was(stood["input"]),
            branch=stood["branch"],
            answers=dict(stood["answers"]),
            asked=list(stood["asked"]),
            held=stood["held"],
            let=stood["let"],
            others=dict(stood["others"]),
        )
