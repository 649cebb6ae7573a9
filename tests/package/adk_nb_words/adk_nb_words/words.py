"""The magic `%words`, the option `%%agent --at-most`, and the panel `Words`."""

from typing import Any

from adk_nb.agents import LlmAgent
from adk_nb.errors import InputError
from adk_nb.extensions import AgentOption, Grammar, Host, Option, text
from adk_nb.panels import Panel, PanelRun

WORDS = Grammar(
    "words",
    "Count the words of the last answer.",
    examples=["%words", "%words --of question"],
    options=[Option("--of TEXT", "the question, or the answer", choices=("question", "answer"))],
)


def words(host: Host, line: str, cell: str | None) -> Any:
    """Count the words of the last answer."""
    args = WORDS.parse(line, cell)
    reply = host.notebook.variables.get("_run")
    if reply is None:
        raise InputError("%words: there is no answer yet; type %chat first")
    count = len(((reply.question if args.of == "question" else reply.text) or "").split())
    limit = host.settings.words_limit
    return text(f"{count} words" if count <= limit else f"{count} words, more than {limit}")


def be_brief(agent: LlmAgent, limit: int) -> None:
    """Ask the model for at most `limit` words."""

    def ask(callback_context: Any, llm_request: Any) -> None:
        llm_request.append_instructions([f"Answer in at most {limit} words."])

    others = agent.before_model_callback or []
    agent.before_model_callback = [*(others if isinstance(others, list) else [others]), ask]


def count_words(run: PanelRun, id: str) -> list[dict[str, Any]]:
    """The words of each event of a run."""
    return [{"author": event.author, "words": len(event.text.split())} for event in run.events if event.text]


OPTIONS = [AgentOption(option=Option("--at-most N", "limit of words of an answer", convert=int), apply=be_brief)]
PANEL = Panel(
    name="words",
    title="Words",
    data=count_words,
    module="""
export default {
  render(root, data) {
    root.replaceChildren(...data.map(({ author, words }) =>
      Object.assign(document.createElement("p"), { textContent: `${author}: ${words} words` })));
  },
};
""",
)
