"""A plugin that tells every agent the same, before its own instruction."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.context import CallbackContext, ReadonlyContext
from adk_nb.runtime.instructions import inject_session_state


class GlobalInstructionPlugin(BasePlugin):
    """Puts an instruction before that of every agent of the app, and after what is static in that."""

    def __init__(
        self,
        global_instruction: str | Callable[[ReadonlyContext], Any] = "",
        name: str = "global_instruction",
    ) -> None:
        """`global_instruction`: a text, with `{keys}` as in an agent's instruction; or `(context) -> str`, sync or
        async, whose text is taken as it is.
        """
        super().__init__(name)
        self.global_instruction = global_instruction

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        if text := await self._text(callback_context):
            config = llm_request.config
            config.system_instruction = _put_in(text, cast(Any, config).system_instruction, llm_request)

    async def _text(self, ctx: ReadonlyContext) -> str:
        if isinstance(self.global_instruction, str):
            return await inject_session_state(self.global_instruction, ctx)
        text = self.global_instruction(ctx)
        return await text if inspect.isawaitable(text) else text


def _put_in(text: str, present: Any, request: LlmRequest) -> Any:
    """`text`, a blank line, and the present instruction, in whichever of its forms that is.

    What is the same at every call stays first, so that a service can go on from what it keeps in its cache.
    """
    if not present:
        return text
    if isinstance(present, str):
        static = request.static_instruction
        if static and present.startswith(static):
            return f"{static}\n\n{text}{present.removeprefix(static)}"
        return f"{text}\n\n{present}"
    if isinstance(present, types.Content):
        parts = [types.Part(text=f"{text}\n\n"), *(present.parts or [])]
        return types.Content(role=present.role, parts=parts)
    rest = cast(list[Any], present) if isinstance(present, list) else [present]
    return [f"{text}\n\n", *rest]
