"""What a request is made of: instruction, identity, settings, tools, history."""

from typing import Any

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.models import LlmRequest, ScriptedLlm
from adk_nb.tools import BaseTool, FunctionTool, ToolContext
from tests.support.talk import Talk, content_summaries


def look() -> str:
    """Looks."""
    return "seen"


class Prepares(BaseTool):
    """A tool that says something to the model before it is asked."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, description="Prepares.")

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return None

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([f"{self.name} is ready."])
        tool_context.state[f"{self.name}_prepared"] = True


def request_of(**fields: Any) -> tuple[LlmRequest, Talk]:
    model = ScriptedLlm("ok")
    talk = Talk(LlmAgent(name="a", model=model, **fields))
    talk.say()
    assert talk.error is None
    return model.requests[0], talk


def declared(request: LlmRequest) -> list[list[str | None]]:
    return [[one.name for one in tool.function_declarations or []] for tool in request.config.tools or []]


def test_all_functions_stand_in_one_list_in_their_order():
    more = [FunctionTool(look, name=f"look{number}") for number in range(5)]

    request, _ = request_of(tools=[look, *more])

    assert declared(request) == [["look", "look0", "look1", "look2", "look3", "look4"]]
    assert list(request.tools_dict) == declared(request)[0]


def test_without_tools_there_is_no_list_of_them():
    request, _ = request_of()

    assert request.config.tools is None
    assert content_summaries(request.contents) == [("user", "hi")]


def test_a_tool_may_prepare_the_request_and_what_it_writes_is_kept():
    request, talk = request_of(tools=[Prepares("first"), look, Prepares("second")], instruction="Be brief.")

    assert sorted(declared(request)[0]) == ["first", "look", "second"]
    own, identity, *prepared = str(request.config.system_instruction).split("\n\n")
    assert own == "Be brief." and '"a"' in identity
    assert prepared == [
        "first is ready.",
        "second is ready.",
    ]
    assert talk.stored().state == {"first_prepared": True, "second_prepared": True}
    assert talk.stored().events[-1].actions.state_delta == {"first_prepared": True, "second_prepared": True}


def test_a_request_does_not_grow_the_next_one():
    model = ScriptedLlm("one", "two")
    settings = types.GenerateContentConfig(temperature=0.5, system_instruction=None)
    talk = Talk(LlmAgent(name="a", model=model, tools=[look, Prepares("p")], generate_content_config=settings))

    talk.say()
    talk.say()

    first, second = model.requests
    assert first.config == second.config
    assert declared(second) == declared(first)
    assert settings == types.GenerateContentConfig(temperature=0.5)
