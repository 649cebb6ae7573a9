"""Which artifact is meant: an app, a user, perhaps a session, and a name."""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, unquote

from adk_nb.errors import InputError
from adk_nb.wire import not_json

USER = "user:"
"""Before a name that belongs to the user."""
_URI = re.compile(r"artifact://apps/([^/]+)/users/([^/]+)(?:/sessions/([^/]+))?/artifacts/(.+)/versions/([0-9]{1,9})")


@dataclass(frozen=True)
class Place:
    """Where the versions of one artifact are."""

    app_name: str
    user_id: str
    session_id: str | None
    """None: it belongs to the user."""
    name: str
    """Without `user:`."""

    @property
    def filename(self) -> str:
        return self.name if self.session_id is not None else USER + self.name

    def uri(self, scheme: str, version: int) -> str:
        """Where one version is, as ADK writes it; what is no plain text in it is percent-encoded."""
        session = "" if self.session_id is None else f"/sessions/{_encoded(self.session_id)}"
        name = quote(self.name, safe="/", errors="surrogatepass")
        app, user = _encoded(self.app_name), _encoded(self.user_id)
        return f"{scheme}://apps/{app}/users/{user}{session}/artifacts/{name}/versions/{version}"


def place_of(app_name: str, user_id: str, filename: str, session_id: str | None) -> Place:
    """The place of `filename`.

    Raises:
        InputError: The name is empty, or holds half a character, or belongs to a session and none is named.
    """
    name = unicodedata.normalize("NFC", filename.removeprefix(USER))
    if not name.strip() or not_json(name):
        raise InputError(
            f"an artifact needs a name, and {filename!r:.80} is none; write 'report.txt', or 'user:report.txt'"
        )
    if filename.startswith(USER):
        return Place(app_name, user_id, None, name)
    if session_id is None:
        raise InputError(
            f"artifact {filename!r} belongs to a session; pass session_id=..., or name it {USER + filename!r} "
            "to share it among the user's sessions"
        )
    return Place(app_name, user_id, session_id, name)


def referred(uri: str, place: Place) -> tuple[Place, int]:
    """Which artifact and version an `artifact://` URI means that stands at `place`.

    Raises:
        InputError: It is no such URI, or leads out of the reach of `place`: another app, user or session.
    """
    found = _URI.fullmatch(uri)
    if not found:
        raise InputError(
            f"{uri!r:.200} is no reference to an artifact; write artifact://apps/APP/users/USER"
            "[/sessions/SESSION]/artifacts/NAME/versions/0"
        )
    app, user, session, name = (unquote(one) if one else None for one in found.groups()[:4])
    target = Place(app or "", user or "", session, name or "")
    if (target.app_name, target.user_id) != (place.app_name, place.user_id):
        raise InputError(f"artifact {place.filename!r} refers to {uri!r:.200}, which belongs to another user or app")
    if target.session_id not in (None, place.session_id):
        raise InputError(f"artifact {place.filename!r} refers to {uri!r:.200}, which belongs to another session")
    return target, int(found[5])


def _encoded(segment: str) -> str:
    return quote(segment, safe="", errors="surrogatepass")
