"""Question and answer of a run that is over, alone: for a view that has all the rest in its panels."""

from adk_nb.notebook.view import grounding, rich_results
from adk_nb.notebook.view.event_words import question_text
from adk_nb.notebook.view.interrupt_text import decisions_html
from adk_nb.notebook.view.members import last_words
from adk_nb.notebook.view.output_view import output_view
from adk_nb.notebook.view.plain_text import cleaned
from adk_nb.notebook.view.render import heading
from adk_nb.notebook.view.rows import rows_and_decisions
from adk_nb.notebook.view.said_so_far import ShownTurn
from adk_nb.notebook.view.view_state import Json
from adk_nb.notebook.view.writers.elements import element
from adk_nb.notebook.view.writers.isolated_page import isolated_page
from adk_nb.notebook.view.writers.markdown_html import to_html


def answer_shown(reply: ShownTurn) -> Json:
    """`{"question", "members", "who", "html", "pages", "shown"}`; `question` is empty where the run went on from an
    approval, `members` are as `members.last_words` has them, `shown` as `rich_results.of_events`.
    """
    found = grounding.grounding_of(reply.events)
    words = grounding.cited(reply.text, reply.events, found, grounding.MARKDOWN)
    decisions = rows_and_decisions(reply.events, history=reply.history, elsewhere=reply.elsewhere)[1]
    output = output_view(reply.events, reply.text)
    answer = output.html if output else to_html(words)
    said = answer if words.strip() or reply.elsewhere else element("p", element("em", "No answer."))
    return {
        "question": cleaned(question_text(reply.question, reply.events)),
        "members": last_words(reply.events, reply.answered_by, reply.text),
        "who": heading(reply),
        "html": "".join([*decisions_html(decisions), said, *grounding.words(found)]),
        "pages": [isolated_page(one) for one in found.suggestions],
        "shown": rich_results.of_events(reply.events, live=True),
    }
