"""A plugin that adds an instruction to all agents."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.context import CallbackContext, ReadonlyContext
from adk_nb.runtime.instructions import inject_session_state


class GlobalInstructionPlugin(BasePlugin):
    """Prepends an instruction to that of every agent of the app, after its static instruction."""

    def __init__(
        self,
        global_instruction: str | Callable[[ReadonlyContext], Any] = "",
        name: str = "global_instruction",
    ) -> None:
        """`global_instruction`: a text with `{keys}` as in an agent's instruction; or `(context) -> str`, sync or
        async, whose result is used as it is.
        """
        super().__init__(name)
        self.global_instruction = global_instruction

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Add the instruction to the request."""
        if not (text := await self._text(callback_context)):
            return
        config: Any = llm_request.config
        current, static = config.system_instruction, llm_request.static_instruction
        if not current:
            config.system_instruction = text
        elif isinstance(current, str):
            # The static part stays first, so that the service's prompt cache applies.
            if static and current.startswith(static):
                config.system_instruction = f"{static}\n\n{text}{current.removeprefix(static)}"
            else:
                config.system_instruction = f"{text}\n\n{current}"
        elif isinstance(current, types.Content):
            parts = [types.Part(text=f"{text}\n\n"), *(current.parts or [])]
            config.system_instruction = types.Content(role=current.role, parts=parts)
        else:
            rest = cast(list[Any], current) if isinstance(current, list) else [current]
            config.system_instruction = [f"{text}\n\n", *rest]

    async def _text(self, ctx: ReadonlyContext) -> str:
        if isinstance(self.global_instruction, str):
            return await inject_session_state(self.global_instruction, ctx)
        text = self.global_instruction(ctx)
        return await text if inspect.isawaitable(text) else text
