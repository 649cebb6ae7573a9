"""Identifiers of artifacts: app, user, possibly session, and name."""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, unquote

from adk_nb.errors import InputError
from adk_nb.wire import json_problem

USER = "user:"
"""Prefix of names that belong to the user."""
_URI = re.compile(r"artifact://apps/([^/]+)/users/([^/]+)(?:/sessions/([^/]+))?/artifacts/(.+)/versions/([0-9]{1,9})")


@dataclass(frozen=True)
class ArtifactId:
    """Identifier of an artifact, whose versions are stored together."""

    app_name: str
    user_id: str
    session_id: str | None
    """None: it belongs to the user."""
    name: str
    """Name without `user:`."""

    @property
    def filename(self) -> str:
        """The name with `user:` where it belongs to the user."""
        return self.name if self.session_id is not None else USER + self.name

    def uri(self, scheme: str, version: int) -> str:
        """URI of a version in ADK's notation, percent-encoded."""
        session = "" if self.session_id is None else f"/sessions/{_quote(self.session_id)}"
        name = quote(self.name, safe="/", errors="surrogatepass")
        app, user = _quote(self.app_name), _quote(self.user_id)
        return f"{scheme}://apps/{app}/users/{user}{session}/artifacts/{name}/versions/{version}"


def artifact_id(app_name: str, user_id: str, filename: str, session_id: str | None) -> ArtifactId:
    """The identifier for `filename`.

    Raises:
        InputError: The name is empty or has a lone surrogate, or it needs a session and there is none.
    """
    name = unicodedata.normalize("NFC", filename.removeprefix(USER))
    if not name.strip() or json_problem(name):
        raise InputError(f"invalid artifact name {filename!r:.80}; write 'report.txt', or 'user:report.txt'")
    if filename.startswith(USER):
        return ArtifactId(app_name, user_id, None, name)
    if session_id is None:
        raise InputError(
            f"artifact {filename!r} belongs to a session; pass session_id=..., or name it {USER + filename!r} "
            "to share it among the user's sessions"
        )
    return ArtifactId(app_name, user_id, session_id, name)


def parse_reference(uri: str, key: ArtifactId) -> tuple[ArtifactId, int]:
    """Parse an `artifact://` URI stored in artifact `key`. Returns the target's identifier and version.

    Raises:
        InputError: It is not such a URI, or refers to another app, user or session than `key`.
    """
    match = _URI.fullmatch(uri)
    if not match:
        raise InputError(
            f"{uri!r:.200} is not a reference to an artifact; write artifact://apps/APP/users/USER"
            "[/sessions/SESSION]/artifacts/NAME/versions/0"
        )
    app, user, session, name = (unquote(segment) if segment else None for segment in match.groups()[:4])
    target = ArtifactId(app or "", user or "", session, name or "")
    if (target.app_name, target.user_id) != (key.app_name, key.user_id):
        raise InputError(f"artifact {key.filename!r} refers to {uri!r:.200}, which belongs to another user or app")
    if target.session_id not in (None, key.session_id):
        raise InputError(f"artifact {key.filename!r} refers to {uri!r:.200}, which belongs to another session")
    return target, int(match[5])


def _quote(segment: str) -> str:
    return quote(segment, safe="", errors="surrogatepass")
