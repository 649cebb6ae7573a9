"""Pictures and other media that a tool returns: they reach the model beside the JSON of the result, and stay there."""

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from IPython.display import Image as ShownImage

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import Gemini
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.tools.media import MAX_MEDIA, MAX_MEDIA_BYTES
from tests.models.gemini_server import GeminiServer, answer, calls
from tests.support.each import each
from tests.support.late import late
from tests.support.talk import Talk

Pillow = late("PIL.Image")


def pillow(kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Pillow.new("RGB", (3, 2), "red").save(file, kind)
    return file.getvalue()


def large(number: int = 0) -> bytes:
    """A PNG, as far as anybody looks, that is over the limit."""
    return pillow() + bytes([number]) * MAX_MEDIA_BYTES


def figure() -> Any:
    made = late("matplotlib.figure").Figure()
    made.add_subplot().plot([1, 2])
    return made


def said(result: Any, *, keeps: bool = True) -> tuple[types.FunctionResponse, Talk]:
    """What the model got for a tool's result, and the conversation."""

    def look() -> Any:
        """Looks."""
        return result() if callable(result) else result

    model = ScriptedLlm(call("look"), "done")
    talk = Talk(LlmAgent(name="guide", model=model, tools=[look]))
    if not keeps:
        talk.runner.artifact_service = None
    talk.say()
    assert talk.error is None
    sent = (model.requests[1].contents[-1].parts or [])[0].function_response
    assert sent is not None
    return sent, talk


def inline(response: types.FunctionResponse) -> list[tuple[str | None, bytes | None]]:
    blobs = [part.inline_data for part in response.parts or []]
    return [(blob.mime_type, blob.data) for blob in blobs if blob]


PNG, JPEG = pillow(), pillow("JPEG")


@each(
    "result, mime_type, data",
    [
        (types.Part(inline_data=types.Blob(data=b"\x01\x02", mime_type="audio/wav")), "audio/wav", b"\x01\x02"),
        (types.Blob(data=b"\x01\x02", mime_type="video/mp4"), "video/mp4", b"\x01\x02"),
        (types.Image(image_bytes=PNG), "image/png", PNG),
        (types.Image(image_bytes=JPEG), "image/jpeg", JPEG),
        (types.Image(image_bytes=b"\x01", mime_type="image/heic"), "image/heic", b"\x01"),
        (PNG, "image/png", PNG),
        (bytearray(JPEG), "image/jpeg", JPEG),
        (pillow("GIF"), "image/gif", pillow("GIF")),
        (pillow("WEBP"), "image/webp", pillow("WEBP")),
        (b"%PDF-1.7 ...", "application/pdf", b"%PDF-1.7 ..."),
        (ShownImage(data=PNG), "image/png", PNG),
        (ShownImage(data=JPEG), "image/jpeg", JPEG),
        (ShownImage(data=PNG, width=30), "image/png", PNG),
    ],
)
def test_media_reach_the_model_beside_the_result(result: Any, mime_type: str, data: bytes):
    response, _ = said(result)

    assert response.response == {"media": mime_type, "bytes": len(data), "part": 1}
    assert inline(response) == [(mime_type, data)]


def test_a_picture_of_pillow_arrives_as_png():
    response, _ = said(Pillow.new("RGB", (3, 2), "red"))

    [(mime_type, data)] = inline(response)
    picture = Pillow.open(io.BytesIO(data or b""))
    assert (mime_type, picture.format, picture.size, picture.getpixel((0, 0))) == (
        "image/png",
        "PNG",
        (3, 2),
        (255, 0, 0),
    )


def test_a_figure_arrives_as_png():
    response, _ = said(figure)

    [(mime_type, data)] = inline(response)
    assert (mime_type, Pillow.open(io.BytesIO(data or b"")).format) == ("image/png", "PNG")


def test_an_address_is_handed_on_as_an_address():
    response, _ = said(types.Part.from_uri(file_uri="gs://bucket/cat.png", mime_type="image/png"))

    assert response.response == {"media": "image/png", "uri": "gs://bucket/cat.png", "part": 1}
    assert [part.file_data.file_uri for part in response.parts or [] if part.file_data] == ["gs://bucket/cat.png"]


def test_media_among_other_values_are_found_wherever_they_lie():
    response, _ = said({"caption": "two", "pictures": [PNG, {"second": types.Blob(data=JPEG, mime_type="image/jpeg")}]})

    assert response.response == {
        "caption": "two",
        "pictures": [
            {"media": "image/png", "bytes": len(PNG), "part": 1},
            {"second": {"media": "image/jpeg", "bytes": len(JPEG), "part": 2}},
        ],
    }
    assert inline(response) == [("image/png", PNG), ("image/jpeg", JPEG)]


def test_a_part_with_words_is_no_media():
    response, _ = said(types.Part(text="hello"))

    assert response.parts is None
    assert (response.response or {})["text"] == "hello"


def test_other_bytes_are_encoded_in_base64():
    response, _ = said(b"\x00\x01")

    assert (response.response, response.parts) == ({"result": "AAE="}, None)


def test_media_are_the_same_after_a_reload():
    _, talk = said([PNG, types.FileData(file_uri="gs://b/c.mp4", mime_type="video/mp4")])

    event = next(event for event in talk.stored().events if event.get_function_responses())
    again = Event.model_validate_json(event.model_dump_json(by_alias=True))

    assert again == event
    assert len(again.get_function_responses()[0].parts or []) == 2
    assert json.loads(json.dumps(again.model_dump(mode="json"))) == event.model_dump(mode="json")


def test_what_is_too_large_is_kept_as_an_artifact_and_the_rest_is_sent():
    response, talk = said([large(1), PNG])

    first, second = (response.response or {})["result"]
    assert inline(response) == [("image/png", PNG)]
    assert second == {"media": "image/png", "bytes": len(PNG), "part": 1}
    assert "part" not in first and str(MAX_MEDIA_BYTES) in first["note"]
    assert (first["artifact"].endswith(".png"), first["version"]) == (True, 0)
    where = {"app_name": "app", "user_id": "u", "session_id": "s", "filename": first["artifact"]}
    assert talk.runner.artifact_service
    kept = sync.run(talk.runner.artifact_service.load_artifact(**where))
    assert kept and kept.inline_data and kept.inline_data.data == large(1)


def test_what_is_too_large_is_left_out_and_said_to_be_where_nothing_keeps_it():
    response, _ = said(large(), keeps=False)

    assert response.parts is None
    assert "omitted" in (response.response or {})["note"] and "artifact" not in (response.response or {})


def test_more_pieces_than_a_result_can_have_are_left_out_and_said_to_be():
    response, _ = said([PNG] * (MAX_MEDIA + 2))

    told = (response.response or {})["result"]
    assert len(response.parts or []) == MAX_MEDIA
    assert [("part" in one, "note" in one) for one in told[-3:]] == [(True, False), (False, True), (False, True)]


class Draws:
    def __init__(self, what: Any) -> None:
        self.what = what

    def _repr_png_(self) -> Any:
        return self.what() if callable(self.what) else self.what


def boom() -> bytes:
    raise ValueError("boom")


@pytest.mark.parametrize("what", [None, b"", 3, (), (None, {}), "no base64!", boom])
def test_what_cannot_be_drawn_ends_no_run(what: Any):
    response, _ = said(Draws(what))

    assert response.parts is None
    assert (response.response or {})["unserializable"] == "Draws"


class ClaimsAll:
    def __getattr__(self, name: str) -> Callable[..., bytes]:
        return lambda *_: PNG


def test_who_claims_to_have_every_method_is_no_picture():
    assert said(ClaimsAll())[0].parts is None


def asked_with_a_picture(model: str) -> list[dict[str, Any]]:
    """The parts of the turn in which a Gemini model gets the result of a call."""

    def look() -> Any:
        """Looks."""
        return PNG

    with GeminiServer() as server:
        server.say(answer(calls("look"), finish="STOP"), framing="close")
        server.say(answer("red", finish="STOP"), framing="close")
        talk = Talk(LlmAgent(name="guide", model=Gemini(model=model, base_url=server.url, api_key="k"), tools=[look]))
        talk.say()
        assert talk.error is None
        return server.requests[-1].body["contents"][-1]["parts"]


SENT = {"mime_type": "image/png", "data": base64.b64encode(PNG).decode()}
"""Proto3's JSON takes either spelling of a name."""


def test_pictures_arrive_at_the_service():
    [part] = asked_with_a_picture("gemini-3-flash-preview")

    assert part["functionResponse"]["parts"][0]["inline_data"] == SENT


def test_a_gemini_that_takes_no_media_within_a_result_gets_them_beside_it():
    result, picture = asked_with_a_picture("gemini-2.5-flash")

    assert "parts" not in result["functionResponse"]
    assert result["functionResponse"]["response"] == {"media": "image/png", "bytes": len(PNG), "part": 1}
    blob = picture.get("inlineData") or picture["inline_data"]
    assert sorted(blob.values()) == sorted(SENT.values())
