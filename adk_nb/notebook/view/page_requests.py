"""What a page may ask for beside answers to cards: checked, so that no odd message reaches a run."""

from adk_nb.notebook.view.view_state import Json

_FIELDS = {"need": ("what", "id"), "rerun": ("event",), "state": ("key", "text")}


def request_of(message: Json) -> Json | None:
    """`{"kind": "need", "what", "id"}`, `{"kind": "rerun", "event"}` or `{"kind": "state", "key", "text"}` (`text`
    None: the key goes away); None for anything else.
    """
    fields = _FIELDS.get(str(message.get("kind")))
    if fields is None:
        return None
    asked = {name: message.get(name) for name in fields}
    if message["kind"] == "need":
        asked["id"] = asked["id"] or ""
    is_text = all(isinstance(value, str) or (name == "text" and value is None) for name, value in asked.items())
    return {"kind": message["kind"], **asked} if is_text else None
