"""The model when there is no key: calls tools by matching words; not a language model."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.offline.arguments import Filled, fill
from adk_nb.models.offline.matching import Plan, changes, negates, only_fit, plans
from adk_nb.models.offline.phrasing import asked_tool, introduction, question_for, results_told
from adk_nb.models.offline.tools import TRANSFER, OfferedTool, offered_tools
from adk_nb.models.offline.words import MAX_CHARS

NAME = "offline"
_PIECE = re.compile(r"\S+\s*|\s+")
_DROPPED = re.compile(r"\W*(cancel|never ?mind|forget (it|that)|stop)\W*", re.IGNORECASE)
_ABOUT_ITSELF = re.compile(
    r"\W*(help|hi|hello|hey|who are you|what are you|what can (you|i) (do|ask)( here)?|what tools .*)\W*", re.IGNORECASE
)
_MORE = re.compile(r"\W*(and|or|now|then|also|same|again|(what|how) about)\b", re.IGNORECASE)
_QUESTIONS_BACK = 5
_NARRATED = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>"
"""In what tells of another agent."""

Call = tuple[str, dict[str, Any]]


class OfflineLlm(BaseLlm):
    """A small deterministic stand-in that really calls tools: for readers without a key, and for tutorials.

    It picks the tool whose name, description and parameters share most words with the last message, and reads the
    arguments from it by type: names, numbers, units, quotes, dates, enum values, yes and no. It asks for a required one
    that is not there, and puts results into plain sentences. Several values, or several clauses, make several calls. A
    result never makes it call anything, so what a tool returns cannot give it orders, and neither can another agent.
    Agents that can take over are chosen like tools, by their names and descriptions; who was handed the conversation in
    this turn keeps it.

    It is not a language model. It knows nothing, reads no instruction, writes no prose. It knows English word endings
    and no synonyms: "how warm" finds a tool only if its words say warm. It does not plan: a result is never the next
    call's argument. It cannot answer in an output schema. "Bosnia and Herzegovina" are two places to it, unless in
    quotes; "Paris, France" is one; "3,5" is two numbers. Of a message it reads the first 4,000 characters.
    """

    model: str = NAME
    pace_seconds: float = Field(default=0.02, ge=0, allow_inf_nan=False)
    """Pause between two streamed words, in seconds, so that a reader sees a stream."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return [NAME]

    @property
    def notice(self) -> str | None:
        """What this is, for every view of its words."""
        return "offline: a small matcher that calls tools by their words, not a language model"

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answer = _Turn(llm_request).answer()
        if isinstance(answer, str):
            parts = [types.Part(text=answer)]
            for piece in _PIECE.findall(answer) if stream else ():
                yield LlmResponse(
                    content=types.Content(role="model", parts=[types.Part(text=piece)]),
                    partial=True,
                    model_version=NAME,
                )
                await asyncio.sleep(self.pace_seconds)
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in answer]
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            turn_complete=True,
            finish_reason=types.FinishReason.STOP,
            model_version=NAME,
        )


class _Turn:
    """The last message of a conversation, and what was done for it so far."""

    def __init__(self, request: LlmRequest) -> None:
        self.offered = offered_tools(request)
        contents = [one for one in request.contents if _NARRATED not in _text(one)]
        asked = next((n for n in reversed(range(len(contents))) if _says(contents[n], "user")), -1)
        self.message = _text(contents[asked])[:MAX_CHARS] if asked >= 0 else ""
        self.before = contents[: max(asked, 0)]
        self.results = _results(contents[asked + 1 :])
        """Of the calls made for this message: name, arguments, response."""
        if any(f"called tool `{TRANSFER}`" in _text(one) for one in _after(request.contents, contents, asked)):
            self.offered = [one for one in self.offered if not one.takes_over]

    def answer(self) -> str | list[Call]:
        """The calls to make now, or the words to say."""
        wanted, question = self._wanted()
        wanted = self._handing_over(wanted)
        made = [_key((name, args)) for name, args, _ in self.results]
        calls = [one for n, one in enumerate(wanted) if _key(one) not in made and one not in wanted[:n]]
        if self.results:
            # A tool that was asked once has had its say: its arguments may have been changed before it ran.
            calls = [one for one in calls if one[0] not in {name for name, _, _ in self.results}]
        return calls or (results_told(self.results) if self.results else question)

    def _handing_over(self, wanted: Sequence[Call]) -> list[Call]:
        """Who was chosen to take over is called by the tool for that, and once."""
        agents = {one.name for one in self.offered if one.takes_over}
        over = [(TRANSFER, {"agent_name": name}) for name, _ in wanted if name in agents]
        return [*(one for one in wanted if one[0] not in agents), *over[:1]]

    def _wanted(self) -> tuple[list[Call], str]:
        """What the message asks for, and what to say when that is no call."""
        if not self.message.strip() or _ABOUT_ITSELF.fullmatch(self.message):
            return [], introduction(self.offered, understood=True)
        if begun := self._begun():
            return self._continued(*begun)
        found = plans(self.offered, self.message)
        if not found and not negates(self.message):
            found = [one for one in (self._follow_up() or only_fit(self.offered, self.message),) if one]
        if found and found[0].filled.missing:
            return [], question_for(found[0].tool, found[0].filled.missing)
        return [call for one in found for call in one.calls], introduction(self.offered)

    def _begun(self) -> tuple[OfferedTool, list[str]] | None:
        """The tool that the last answer asked an argument for, and what was said for it before, oldest first."""
        said: list[str] = []
        at = len(self.before) - 1
        tool: OfferedTool | None = None
        while at > 0 and len(said) < _QUESTIONS_BACK:
            name = asked_tool(_text(self.before[at])) if _says(self.before[at], "model") else None
            found = next((one for one in self.offered if one.name == name), None)
            if not found or (tool and found != tool) or not _says(self.before[at - 1], "user"):
                break
            tool = found
            said.insert(0, _text(self.before[at - 1]))
            at -= 2
        return (tool, said) if tool else None

    def _continued(self, tool: OfferedTool, said: Sequence[str]) -> tuple[list[Call], str]:
        if _DROPPED.fullmatch(self.message):
            return [], f"Then `{tool.name}` is not called."
        other = plans(self.offered, self.message)
        if other and other[0].tool != tool and other[0].score >= 3 and not other[0].filled.missing:
            return [call for one in other for call in one.calls], ""
        values: dict[str, list[Any]] = {}
        for text in (*said, self.message):
            values = {**fill(tool, text).values, **values}
        missing = [one for one in tool.parameters if one.required and one.name not in values]
        if (
            len(missing) == 1
            and missing[0].kind in ("string", "any")
            and not missing[0].enum
            and not fill(tool, self.message).values
        ):
            values[missing[0].name] = [self.message.strip()]
            missing = []
        if missing:
            return [], question_for(tool, missing)
        ordered = {one.name: values[one.name] for one in tool.parameters if one.name in values}
        return [(tool.name, args) for args in Filled(ordered, [], 0).calls()], ""

    def _follow_up(self) -> Plan | None:
        """`And Paris?` after a call: the latest tool it can mean, with what it changes."""
        calls = [part.function_call for content in self.before for part in content.parts or [] if part.function_call]
        latest = {call.name: call.args or {} for call in calls}
        for name in reversed(list(dict.fromkeys(call.name for call in calls))):
            tool = next((one for one in self.offered if one.name == name and not changes(one)), None)
            filled = fill(tool, self.message) if tool else None
            if not tool or not filled or not filled.values or filled.spare:
                continue
            if filled.guessed and not _MORE.match(self.message):
                continue
            kept = {name: [value] for name, value in latest[name].items()} | filled.values
            return Plan(tool, Filled(kept, [one for one in filled.missing if one.name not in kept], 0), 0)
        return None


def _after(every: Sequence[types.Content], told: Sequence[types.Content], asked: int) -> Sequence[types.Content]:
    """All contents behind the message that is `told[asked]`."""
    here = next((n for n, one in enumerate(every) if asked >= 0 and one is told[asked]), -1)
    return every[here + 1 :]


def _says(content: types.Content, role: str) -> bool:
    return (content.role or "user") == role and bool(_text(content)) and not _answers(content)


def _text(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or [] if part.text and not part.thought)


def _answers(content: types.Content) -> list[types.FunctionResponse]:
    return [part.function_response for part in content.parts or [] if part.function_response]


def _results(contents: Sequence[types.Content]) -> list[tuple[str, Mapping[str, Any], Any]]:
    """Each call that has an answer, with it; the latest answer of a call counts. In the order of the calls."""
    calls = [part.function_call for content in contents for part in content.parts or [] if part.function_call]
    answers = [one for content in contents for one in _answers(content)]
    found: list[tuple[str, Mapping[str, Any], Any]] = []
    for call in calls:
        # Without ids, as some services send them, the first answer of that name is this call's.
        mine = [one for one in answers if one.name == call.name and (one.id == call.id or not (one.id and call.id))]
        if mine:
            answer = mine[-1] if call.id else mine[0]
            answers = [one for one in answers if one is not answer and (not call.id or one.id != call.id)]
            found.append((call.name or "", call.args or {}, answer.response))
    return found


def _key(call: Call | tuple[str, Mapping[str, Any]]) -> str:
    return json.dumps([call[0], dict(call[1])], sort_keys=True, default=str)
