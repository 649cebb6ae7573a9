"""`BaseRetrievalTool`: a tool that finds passages for a query."""

from typing import Any

from adk_nb import types
from adk_nb.tools.base_tool import BaseTool

_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to look for."}},
    "required": ["query"],
}


class BaseRetrievalTool(BaseTool):
    """Takes one `query`; override `run_async`. No matches is a valid result, not an error."""

    effect = "pure"

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=_PARAMETERS
        )

    def check(self, args: dict[str, Any]) -> str | None:
        """Check that `query` is a text."""
        if isinstance(query := args.get("query"), str) and query.strip():
            return None
        return f"{self.name}() was not called: query must be text, got {query!r:.60}. Call it again with text."
