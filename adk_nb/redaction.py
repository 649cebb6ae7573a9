"""Remove secrets from text and JSON: those known to this process, and text that looks like a secret.

Known secrets come from credentials, settings of models and servers, environment variables with a name like a secret,
and `remember`. The list exists only in this process's memory.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NoReturn, cast
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from adk_nb.errors import ConfigurationError

HIDDEN = "[secret]"
"""Replaces a known secret."""
REDACTED = "[redacted]"
"""Replaces text that looks like a secret."""

_KEYS = re.compile(
    r"""(?<![\w-])(?:
          AIza[\w-]{30,}                              # Google API keys
        | AQ\.[\w-]{20,}                              # Google API keys of the newer kind
        | ya29\.[\w.-]{20,}                           # Google access tokens
        | sk-(?=[\w-]*\d)[\w-]{16,}                   # OpenAI, Anthropic, OpenRouter
        | (?:gh[pousr]_|github_pat_|hf_|glpat-)\w{16,}
        | xox[abeprs]-[\w-]{10,}                      # Slack
        | AKIA[0-9A-Z]{16}                            # AWS
        | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*          # JSON web tokens
        )
      | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_KEY_SIGNS = ("AIza", "AQ.", "ya29.", "sk-", "gh", "hf_", "glpat-", "xox", "AKIA", "eyJ", "-----BEGIN")
"""One of them stands in all that `_KEYS` matches."""
_SHORTEST_LOOKALIKE = 15
"""Characters of the shortest match of `_KEYS` and `_AUTH`: `xoxb-` and ten, `bearer ` and eight."""
_AUTH = re.compile(
    r"(\bbearer\s+)(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}"
    r"|(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer|token)\s+)?+)[\w.~+/=-]{6,}",
    re.IGNORECASE,
)
_SECRET_NAMES = re.compile(
    r"(?:.*[-_])?(?:api[-_]?key|authorization|password|passwd|secret|(?:access|refresh|auth|id)[-_]?token)",
    re.IGNORECASE,
)
_OPAQUE = {"data", "thoughtSignature", "thought_signature"}
"""Base64 of bytes: what looks like a key in there is chance."""

_IN_URLS = re.compile(
    r"(://[^\s/@:'\"]*:)(?!\[)[^\s/@'\"]+(?=@)"
    r"|([?&](?:[\w.-]*(?:key|token|secret|password|passwd|signature)|sig|code)=)(?!\[)[^\s&#'\"]{6,}",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(
    r"(?:.*[-_.])?(?:(?:api[-_]?|app|access|account|private|secret|signing|subscription|master)?key|pat|pwd|passwd"
    r"|password|passphrase|secret|token|credentials?|authorization|signature)s?",
    re.IGNORECASE,
)
"""Names of variables, headers and parameters whose value is one."""
_IN_REQUESTS = ("auth", "code", "cookie", "session", "sid", "sig")
"""The same, where it is an address or a header."""
_PIECES = re.compile(r"[\s;,=]+")
_SHORTEST = 8
"""Characters. What is shorter, or a word of the language, stands in text by chance."""


# ---- what is known

_lock = threading.Lock()
_forms: set[str] = set()
"""Secrets in all the ways they are spelled. None is ever dropped: an old token may still be in a log, or be valid."""
_PREFIX = 6
"""Characters by which a spelling is looked up; none is shorter."""
_lengths: dict[str, tuple[int, ...]] = {}
"""Prefix -> lengths of the spellings that begin so, longest first: what holds another is hidden whole."""
_FEW = 64
"""So many prefixes are looked for one by one; of more, each place of a text is looked up."""
_environment: dict[Any, Any] | None = None
"""The variables that were last looked at."""


def remember(*secrets: str | None) -> None:
    """Hide these secrets from now on in all output: errors, tool results, logs, tracebacks, pages."""
    fresh = [secret for secret in secrets if secret and secret not in _forms and _is_long_enough(secret)]
    if fresh:
        _learn(form for secret in fresh for form in _spellings(secret))


def remember_named(values: Mapping[str, Any] | None) -> None:
    """Remember headers or variables with a name like a secret, or a value that looks like one."""
    for name, value in (values or {}).items():
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, str):
            if _is_secret_name(name) or name.lower() in _IN_REQUESTS or _looks_random(value):
                remember(value, *_PIECES.split(value))  # `Bearer ...`, `name=...; name=...`
            remember_url(value)


def remember_url(url: str | None) -> None:
    """Remember the password of a URL, and its query parameters with a name like a secret."""
    if not url or "://" not in url:
        return
    try:
        parts = urlsplit(url)
        remember(parts.password, unquote(parts.password or ""))
        for name, value in parse_qsl(parts.query):
            remember(value if _is_secret_name(name) or name.lower() in _IN_REQUESTS else None)
    except ValueError:  # no address
        return


def forget() -> None:
    """Forget all known secrets."""
    global _environment
    with _lock:
        _forms.clear()
        _lengths.clear()
        _environment = None


def known_secrets() -> tuple[str, ...]:
    """All spellings of the known secrets, longest first."""
    with _lock:
        return tuple(sorted(_forms, key=len, reverse=True))


def _learn(forms: Iterable[str]) -> None:
    with _lock:
        for form in forms:
            _forms.add(form)
            lengths = {*_lengths.get(form[:_PREFIX], ()), len(form)}
            _lengths[form[:_PREFIX]] = tuple(sorted(lengths, reverse=True))
    _hide_in_logs()


def _is_long_enough(value: str) -> bool:
    if value in (HIDDEN, REDACTED):
        return False
    if value.isalpha() and (value.islower() or value.istitle()):
        return len(value) >= 2 * _SHORTEST
    return len(value) >= _SHORTEST or (len(value) >= _SHORTEST - 2 and value.isalnum() and not value.isdecimal())


def _spellings(secret: str) -> Iterator[str]:
    """As it is, as Python and JSON quote it, as an address holds it; and the long lines of one that has several."""
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= 2 * _SHORTEST and not line.startswith("--"))


@lru_cache(maxsize=4_096)
def _is_secret_name(name: str) -> bool:
    return _SECRET_NAME.fullmatch(name) is not None


@lru_cache(maxsize=4_096)
def _is_secret_field(name: str) -> bool:
    return _SECRET_NAMES.fullmatch(name) is not None


def _looks_random(value: str) -> bool:
    kinds = (any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper))
    return re.fullmatch(r"[\w.~+=-]{16,}", value) is not None and all(kinds)


def remember_environment() -> None:
    """Remember the secrets in environment variables; `hidden` calls this each time, since they may change."""
    global _environment
    variables: dict[Any, Any] = dict(
        getattr(os.environ, "_data", os.environ)
    )  # CPython: encoded, so nothing is decoded
    if variables == _environment:
        return
    _environment = variables
    for name, value in os.environ.items():
        if "://" in value:
            remember_url(value)
        elif _is_secret_name(name) and not re.match(r"[~./]|[A-Za-z]:\\", value):  # a path to one is none
            remember(value)


# ---- text and JSON without them


def without_known(value: Any) -> Any:
    """`value` (text or JSON) with `[secret]` instead of each known secret; unchanged if no secret is known."""
    return _hide_known(value) if _forms else value


def _hide_known(value: Any) -> Any:
    if isinstance(value, str):
        return _text_without_known(value)
    if isinstance(value, list):
        return [_hide_known(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _hide_known(item) for key, item in cast(dict[str, Any], value).items()}
    return value


def _text_without_known(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for index in _prefix_positions(text):
        if index < end:
            continue
        for length in _lengths.get(text[index : index + _PREFIX], ()):
            if text[index : index + length] in _forms:
                pieces += [text[end:index], HIDDEN]
                end = index + length
                break
    return "".join([*pieces, text[end:]]) if pieces else text


def _prefix_positions(text: str) -> Iterable[int]:
    """Positions in `text` of prefixes of known secrets, ascending."""
    prefixes = tuple(_lengths)  # another thread may add to them
    if len(prefixes) <= _FEW:
        return sorted(index for prefix in prefixes if prefix in text for index in _positions(prefix, text))
    return (index for index in range(len(text) - _PREFIX + 1) if text[index : index + _PREFIX] in _lengths)


def _positions(prefix: str, text: str) -> Iterator[int]:
    index = text.find(prefix)
    while index >= 0:
        yield index
        index = text.find(prefix, index + 1)


def hidden(text: str) -> str:
    """Text of an error, a log or a traceback without known secrets and text that looks like one."""
    remember_environment()
    text = without_known(text)
    if "://" in text or "=" in text:
        text = _IN_URLS.sub(lambda found: f"{found[1] or found[2]}{REDACTED}", text)
    return _without_lookalikes(text)


def in_result(response: dict[str, Any]) -> dict[str, Any]:
    """A tool's result without secrets, to be stored and sent to a model."""
    if isinstance(error := response.get("error"), str):
        response = {**response, "error": hidden(error)}
    return without_known(response)


def redacted(value: Any, name: str = "") -> Any:
    """`value` (JSON) without secrets that are known, keys, bearer tokens and the values of fields named like a secret.

    E-mail addresses and other personal words stay (a recording hides addresses too, see `models/cassette.py`).
    """
    if isinstance(value, dict):
        return {key: redacted(item, key) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [redacted(item, name) for item in cast(list[Any], value)]
    if not isinstance(value, str) or name in _OPAQUE:
        return value
    if value and name and _is_secret_field(name):
        return REDACTED
    return _without_lookalikes(without_known(value))


def _without_lookalikes(text: str) -> str:
    if len(text) < _SHORTEST_LOOKALIKE:
        return text
    if any(sign in text for sign in _KEY_SIGNS):  # to look for these costs less than the patterns
        text = _KEYS.sub(REDACTED, text)
    folded = text.lower()
    if "bearer" in folded or "authorization" in folded:
        text = _AUTH.sub(lambda found: f"{found[1] or found[2]}{REDACTED}", text)
    return text


def refuse_pickle(instance: object) -> NoReturn:
    """For the `__reduce_ex__` of what holds secrets.

    Raises:
        ConfigurationError: Always.
    """
    raise ConfigurationError(
        f"a {type(instance).__name__} with secrets cannot be pickled, because a pickle is readable by anyone; "
        "create it where it is used, with secrets from there"
    )


# ---- logs

_hides = False


def _hide_in_logs() -> None:
    """From the first secret on, make each log record without secrets, whichever library logs it and whoever reads it.

    A filter would not do: those of a logger do not see what its children log, and handlers belong to the program.
    """
    global _hides
    if _hides:
        return
    _hides = True
    make = logging.getLogRecordFactory()

    def make_clean_record(*args: Any, **fields: Any) -> logging.LogRecord:
        record = make(*args, **fields)
        if _forms:
            _clean(record)
        return record

    logging.setLogRecordFactory(make_clean_record)


def _clean(record: logging.LogRecord) -> None:
    try:
        message = record.getMessage()
        if (safe := hidden(message)) != message:
            record.msg, record.args = safe, None
        if record.exc_info:
            traceback_text = logging.Formatter().formatException(record.exc_info)
            if (safe := hidden(traceback_text)) != traceback_text:
                record.exc_info, record.exc_text = None, safe
    except Exception:  # a record that cannot be made into text: whoever writes it says so
        return
