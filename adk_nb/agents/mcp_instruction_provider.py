"""A prompt of an MCP server as an agent's instruction."""

from typing import Any

from adk_nb.errors import NotFoundError
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.mcp_tool.content import clean_text
from adk_nb.tools.mcp_tool.mcp_session_manager import McpSessionManager
from adk_nb.tools.mcp_tool.mcp_toolset import connection_params_of

_MAX_PAGES = 100


class McpInstructionProvider:
    """An `instruction` for an agent: at each turn the prompt is fetched from the server.

    The prompt's arguments are values of the state, by name. The texts of its messages are joined; invisible
    characters, which a model would read, are removed.

    Raises:
        ConfigurationError: `connection_params` are not those of a server.
        MissingExtraError: The package `mcp` is not installed.
    """

    def __init__(self, connection_params: Any, prompt_name: str) -> None:
        """`connection_params`: those of McpToolset."""
        self.prompt_name = prompt_name
        self._sessions = McpSessionManager(connection_params_of(connection_params))

    async def __call__(self, context: ReadonlyContext) -> str:
        """The instruction.

        Raises:
            ConnectionError: The server was not reached.
            NotFoundError: It has no such prompt.
        """
        state = context.state

        async def ask(client: Any) -> Any:
            prompts, cursor = dict[str, Any](), None
            # A faulty server may send the same cursor again and again.
            for _ in range(_MAX_PAGES):
                page = await client.list_prompts(cursor=cursor)
                prompts |= {prompt.name: prompt for prompt in page.prompts}
                cursor = page.next_cursor
                if not cursor:
                    break
            if self.prompt_name not in prompts:
                raise NotFoundError("prompt", self.prompt_name, prompts)
            names = [argument.name for argument in prompts[self.prompt_name].arguments or ()]
            arguments = {name: str(state[name]) for name in names if name in state}
            return await client.get_prompt(self.prompt_name, arguments)

        result = await self._sessions.use(None, ask, again=True)
        return "".join(
            clean_text(message.content.text) for message in result.messages if message.content.type == "text"
        )

    async def close(self) -> None:
        """Close the connection; the next turn opens a new one."""
        await self._sessions.close()
