"""What a model's service looked up is shown beside its answer; what is not ours in it, in a frame of its own."""

import pytest
from inline_snapshot import snapshot
from nbformat import v4
from turns import Shown, Talk, event_forms, reply_forms

from adk_nb import types
from adk_nb.models.llm_response import LlmResponse
from adk_nb.notebook.view.rows import rows_of
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS, Page, assert_harmless, assert_nothing_unseen
from tests.support.late import late

nbconvert = late("nbconvert")

ANSWER = "It is **9 °C** in Oslo. Paris has 21 °C."
CHIPS = '<style>.chip { color: blue }</style><div><a class="chip" href="https://www.google.com/search?q=oslo">oslo</a></div>'
SHOWN = CHIPS.replace('oslo">', 'oslo" rel="noopener noreferrer">')
"""With the rel that every link to the outside has."""


def web(title: str, uri: str, domain: str | None = None) -> types.GroundingChunk:
    return types.GroundingChunk(web=types.GroundingChunkWeb(title=title, uri=uri, domain=domain))


def support(words: str, *sources: int, text: str = ANSWER, part: int | None = None) -> types.GroundingSupport:
    """The end of `words` in `text` is where those sources are cited; services count bytes."""
    end = len(text[: text.index(words) + len(words)].encode())
    segment = types.Segment(end_index=end, part_index=part, text=words)
    return types.GroundingSupport(segment=segment, grounding_chunk_indices=list(sources))


def looked_up(text: str = ANSWER, page: str | None = CHIPS, **about) -> Shown:
    """A turn whose answer was looked up."""
    entry = page and types.SearchEntryPoint(rendered_content=page)
    found = types.GroundingMetadata(search_entry_point=entry or None, **about)
    answer = LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), grounding_metadata=found)
    return Shown(events=Talk(answer).say("How warm is it?"), text=text)


def weather(**more) -> Shown:
    return looked_up(
        web_search_queries=["weather oslo", "weather paris"],
        grounding_chunks=[
            web("yr.no", "https://vertexaisearch.cloud.google.com/grounding-api-redirect/a", "yr.no"),
            web("Météo", "https://meteo.example/paris"),
            types.GroundingChunk(retrieved_context=types.GroundingChunkRetrievedContext(title="Ours", uri="gs://b/o")),
        ],
        grounding_supports=[support("in Oslo.", 0), support("Paris has 21 °C.", 1, 2)],
        **more,
    )


def test_sources_and_searches_stand_under_the_answer_and_are_cited_in_it():
    shown = reply_forms(weather(page=None))

    assert shown["text/plain"] == snapshot("""\
weather > It is **9 °C** in Oslo.[1] Paris has 21 °C.[2][3]
Searched for: weather oslo; weather paris
[1] yr.no https://vertexaisearch.cloud.google.com/grounding-api-redirect/a
[2] Météo https://meteo.example/paris (meteo.example)
[3] Ours\
""")
    assert shown["text/markdown"].split("\n\n3 events")[0] == snapshot("""\
It is **9 °C** in Oslo.&#91;1&#93; Paris has 21 °C.&#91;2&#93;&#91;3&#93;

*Searched for: weather oslo; weather paris*

1. [yr.no](<https://vertexaisearch.cloud.google.com/grounding-api-redirect/a>)
2. [Météo](<https://meteo.example/paris>) (meteo.example)
3. Ours\
""")
    assert shown["text/html"].split("<details>")[0] == snapshot("""\
<section>
<p>It is <strong>9 °C</strong> in Oslo.[1] Paris has 21 °C.[2][3]</p>
<p><small>Searched for: weather oslo; weather paris</small></p>
<ol>
<li><a href="https://vertexaisearch.cloud.google.com/grounding-api-redirect/a" rel="noopener noreferrer">yr.no</a></li>
<li><a href="https://meteo.example/paris" rel="noopener noreferrer">Météo</a> (meteo.example)</li>
<li>Ours</li>
</ol>
""")


def test_the_suggestions_of_the_search_service_are_shown_as_they_came_in_a_frame_of_their_own():
    html = reply_forms(weather())["text/html"]

    [frame] = [attributes for tag, attributes in Page(html).elements if tag == "iframe"]
    assert frame["srcdoc"].endswith(SHOWN) and frame["title"] == "Search suggestions"
    assert_harmless(html)


def test_the_live_view_has_a_row_for_it_and_the_log_a_line():
    [_, said, row] = rows_of(weather().events)

    assert (said["kind"], row["kind"], row["author"]) == ("text", "sources", "weather")
    assert [page.endswith(SHOWN) for page in row["pages"]] == [True]
    last = event_forms(weather().events)["text/plain"].splitlines()[-1]
    assert last.startswith("3  weather  sources: ")
    assert "weather oslo; weather paris yr.no" in last
    assert last.endswith("Météo (meteo.example) Ours")


def test_a_turn_that_looked_nothing_up_has_none_of_it():
    assert reply_forms(looked_up(page=None)) == reply_forms(
        Shown(events=Talk(ANSWER).say("How warm is it?"), text=ANSWER)
    )


def test_what_several_answers_found_is_numbered_once():
    first = weather(page=None)
    second = looked_up(
        "Bergen has 8 °C.",
        page=None,
        web_search_queries=["weather oslo"],
        grounding_chunks=[web("New", "https://new.example"), web("Météo", "https://meteo.example/paris")],
        grounding_supports=[support("Bergen has 8 °C.", 0, 1, text="Bergen has 8 °C.")],
    )
    both = Shown(events=[*first.events, *second.events], text=f"{first.text}\n\n{second.text}")

    told = reply_forms(both)["text/plain"]

    assert "8 °C.[4][2]" in told
    assert told.count("weather oslo; weather paris\n") == 1
    assert told.count("meteo.example/paris") == 1


@pytest.mark.parametrize(
    ("end", "source", "cited"),
    [(8, 0, "é[1]"), (8, 7, "é"), (8, -1, "é"), (7, 0, "é"), (0, 0, "é"), (-5, 0, "é"), (10_000, 0, "é")],
)
def test_a_citation_of_nothing_or_in_the_middle_of_a_character_is_left_out(end: int, source: int, cited: str):
    segment = types.Segment(end_index=end)
    cites = [types.GroundingSupport(segment=segment, grounding_chunk_indices=[source])]
    text = "It is é"  # its last character is bytes 6 and 7

    shown = looked_up(text, page=None, grounding_chunks=[web("a", "https://a.example")], grounding_supports=cites)

    assert reply_forms(shown)["text/plain"].split("\n")[0] == f"weather > It is {cited}"


@each("payload", PAYLOADS)
def test_hostile_findings_stay_words_and_hostile_suggestions_stay_in_their_frame(payload: str):
    chunks = [
        web(payload, payload, payload),
        web("x", f"https://a.example/{payload}"),
        web(payload, "https://a.example"),
    ]
    shown = looked_up(
        payload + " end",
        page=payload,
        web_search_queries=[payload],
        retrieval_queries=[payload],
        grounding_chunks=chunks,
        grounding_supports=[support("end", 0, 1, 2, text=payload + " end")] if payload.isprintable() else [],
    )

    told = reply_forms(shown)

    assert_nothing_unseen(told["text/plain"])
    assert_harmless(told["text/html"])
    assert "<iframe" not in told["text/markdown"]
    from_markdown = Page(nbconvert.filters.markdown2html(told["text/markdown"]))
    assert [tag for tag, _ in from_markdown.elements if tag in ("script", "img", "iframe", "svg", "form")] == []
    links = [attributes["href"] for tag, attributes in from_markdown.elements if "href" in attributes]
    assert [one for one in links if not one.startswith(("https://", "http://", "#"))] == []


def test_an_exported_page_has_the_frame_and_nothing_else_that_acts():
    told = reply_forms(weather(page="<script>alert(1)</script><link rel=preconnect href=https://a.example>Oslo"))
    output = v4.new_output("execute_result", data=told, execution_count=1)
    notebook = v4.new_notebook(cells=[v4.new_code_cell("", outputs=[output])])

    body, _ = nbconvert.HTMLExporter(template_name="basic", exclude_input=True).from_notebook_node(notebook)

    frames = [attributes for tag, attributes in Page(body).elements if tag == "iframe"]
    assert [one["srcdoc"].endswith("</style>Oslo") for one in frames] == [True]
    assert [tag for tag, _ in Page(body).elements if tag == "script"] == []


def test_suggestions_of_immoderate_length_are_left_out():
    assert "<iframe" not in reply_forms(looked_up(page="x" * 200_001, web_search_queries=["oslo"]))["text/html"]
