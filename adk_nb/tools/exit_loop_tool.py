"""`exit_loop`: the model ends the loop that its agent runs in."""

from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import pure


@pure
def exit_loop(tool_context: ToolContext) -> None:
    """Leaves the loop that you work in. Call it only when what you were told to wait for has come."""
    tool_context.actions.escalate = True
    # As in google-adk: the model is not called again with the result.
    tool_context.actions.skip_summarization = True
