"""Places in the settings of an HTTP request that are filled when it is sent: `{{$secret('name')}}`, `{{state.key}}`."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from adk_nb.errors import ConfigurationError, MissingKeyError
from adk_nb.redaction import remember

_PLACEHOLDER = re.compile(r"\{\{\s*(?:\$secret\(\s*(?:'([^']*)'|\"([^\"]*)\")\s*\)|state\.([^{}\s]+))\s*\}\}")
_SECRET = re.compile(r"\{\{\s*\$")
_HOW_TO_WRITE = "write {{$secret('name')}} or {{state.key}}"


@dataclass(frozen=True)
class Filling:
    """What such places are filled with, once each: what a value itself holds of that kind stays as it is."""

    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Looked at before the environment."""

    def text(self, template: str) -> str:
        """`template`, filled; of a key that the state does not have with nothing.

        Raises:
            MissingKeyError: There is no such secret.
        """
        return self._fill(template, str)

    def url(self, template: str) -> str:
        """The same for an address: what the state says is quoted, so that it can be a value and nothing more."""
        return self._fill(template, lambda value: quote(value, safe=""))

    def json(self, template: Any) -> Any:
        """The same for every text in JSON."""
        if isinstance(template, str):
            return self.text(template)
        if isinstance(template, list):
            return [self.json(item) for item in cast(list[Any], template)]
        if isinstance(template, dict):
            return {key: self.json(value) for key, value in cast(dict[str, Any], template).items()}
        return template

    def _fill(self, template: str, quoted: Callable[[str], str]) -> str:
        def replacement(match: re.Match[str]) -> str:
            if match[3] is not None:
                return quoted(_as_text(self.state.get(match[3])))
            return self._secret(match[1] if match[1] is not None else match[2])

        return _PLACEHOLDER.sub(replacement, template) if "{{" in template else template

    def _secret(self, name: str) -> str:
        value = self.secrets.get(name) or os.environ.get(name)
        if not value:
            raise MissingKeyError(
                f"the secret {name!r} is not there; type: import os, getpass; "
                f"os.environ[{name!r}] = getpass.getpass(), or pass secrets={{{name!r}: ...}}"
            )
        remember(value)
        return value


def check_template(template: Any, owner: str) -> None:
    """Refuse, in text or JSON, a place for a secret that would be sent as it is written.

    Raises:
        ConfigurationError: There is one; `what` is named.
    """
    text = template if isinstance(template, str) else json.dumps(template)
    for place in _SECRET.finditer(text):
        if not _PLACEHOLDER.match(text.replace('\\"', '"') if not isinstance(template, str) else text, place.start()):
            written = text[place.start() :].partition("}}")[0][:60] + "}}"
            raise ConfigurationError(f"{owner}: {written!r} is no place that is filled; {_HOW_TO_WRITE}")


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
