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
"""Every match of `_KEYS` contains one of these: searching for them is faster than the pattern."""
_SHORTEST_LOOKALIKE = 15
"""Characters of the shortest match of `_KEYS` and `_AUTH`: `xoxb-` and ten, `bearer ` and eight."""
_AUTH = re.compile(
    r"(\bbearer\s+)(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}"
    r"|(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer|token)\s+)?+)[\w.~+/=-]{6,}",
    re.IGNORECASE,
)
_SECRET_FIELD = re.compile(
    r"(?:.*[-_])?(?:api[-_]?key|authorization|password|passwd|secret|(?:access|refresh|auth|id)[-_]?token)",
    re.IGNORECASE,
)
_OPAQUE = {"data", "thoughtSignature", "thought_signature"}
"""Fields with base64, in which a lookalike is chance."""

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
"""Names of environment variables, headers and query parameters whose value is a secret."""
_SECRET_PARAMETERS = ("auth", "code", "cookie", "session", "sid", "sig")
"""More such names, in query parameters and headers only."""
_SEPARATORS = re.compile(r"[\s;,=]+")
_MIN_LENGTH = 8
"""Characters. A shorter value, or an ordinary word, occurs in text by chance."""


# ---- known secrets

_lock = threading.Lock()
_forms: set[str] = set()
"""The known secrets in all spellings. None is ever dropped: an old token may still be valid, or in a log."""
_PREFIX = 6
"""Characters by which a spelling is looked up; no spelling is shorter."""
_lengths: dict[str, tuple[int, ...]] = {}
"""Prefix -> lengths of its spellings, longest first, so that a secret that contains another is hidden whole."""
_MAX_SEARCHED = 64
"""Up to this many prefixes are searched for one by one; with more, each position of the text is looked up."""
_last_environment: dict[Any, Any] | None = None
"""The environment variables at the last look."""


def remember(*secrets: str | None) -> None:
    """Hide these secrets from now on in all output: errors, tool results, logs, tracebacks, pages."""
    fresh = [secret for secret in secrets if secret and secret not in _forms and _is_long_enough(secret)]
    if not fresh:
        return
    with _lock:
        for form in (form for secret in fresh for form in _spellings(secret)):
            _forms.add(form)
            lengths = {*_lengths.get(form[:_PREFIX], ()), len(form)}
            _lengths[form[:_PREFIX]] = tuple(sorted(lengths, reverse=True))
    _clean_logs()


def remember_named(values: Mapping[str, Any] | None) -> None:
    """Remember headers or variables with a name like a secret, or a value that looks like one."""
    for name, value in (values or {}).items():
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, str):
            if is_secret_name(name) or name.lower() in _SECRET_PARAMETERS or _looks_random(value):
                remember(value, *_SEPARATORS.split(value))  # `Bearer ...`, `name=...; name=...`
            remember_url(value)


def remember_url(url: str | None) -> None:
    """Remember the password of a URL, and its query parameters with a name like a secret."""
    if not url or "://" not in url:
        return
    try:
        parts = urlsplit(url)
        remember(parts.password, unquote(parts.password or ""))
        for name, value in parse_qsl(parts.query):
            remember(value if is_secret_name(name) or name.lower() in _SECRET_PARAMETERS else None)
    except ValueError:  # not a URL
        return


def forget() -> None:
    """Forget all known secrets."""
    global _last_environment
    with _lock:
        _forms.clear()
        _lengths.clear()
        _last_environment = None


def known_secrets() -> tuple[str, ...]:
    """All spellings of the known secrets, longest first."""
    with _lock:
        return tuple(sorted(_forms, key=len, reverse=True))


def _is_long_enough(value: str) -> bool:
    if value in (HIDDEN, REDACTED):
        return False
    if value.isalpha() and (value.islower() or value.istitle()):
        return len(value) >= 2 * _MIN_LENGTH
    return len(value) >= _MIN_LENGTH or (len(value) >= _MIN_LENGTH - 2 and value.isalnum() and not value.isdecimal())


def _spellings(secret: str) -> Iterator[str]:
    """The secret itself, quoted as in Python, JSON and URLs, and the long lines of a multi-line secret."""
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret)
    yield quote(secret, safe="")
    yield quote_plus(secret)
    lines = secret.splitlines()
    if len(lines) > 1:
        stripped_lines = (line.strip() for line in lines if not line.startswith("--"))
        yield from (line for line in stripped_lines if len(line) >= 2 * _MIN_LENGTH)


@lru_cache(maxsize=4_096)
def is_secret_name(name: str) -> bool:
    """True for the name of a variable, header or parameter whose value is a secret, as `API_KEY`."""
    return _SECRET_NAME.fullmatch(name) is not None


@lru_cache(maxsize=4_096)
def _is_secret_field(name: str) -> bool:
    return _SECRET_FIELD.fullmatch(name) is not None


def _looks_random(value: str) -> bool:
    kinds = (any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper))
    return re.fullmatch(r"[\w.~+=-]{16,}", value) is not None and all(kinds)


def remember_environment() -> None:
    """Remember the secrets in environment variables; `hidden` calls this each time, since they may change."""
    global _last_environment
    # CPython keeps the encoded variables in `_data`: copying those decodes nothing.
    variables: dict[Any, Any] = dict(getattr(os.environ, "_data", os.environ))
    if variables == _last_environment:
        return
    _last_environment = variables
    for name, value in os.environ.items():
        if "://" in value:
            remember_url(value)
        elif is_secret_name(name) and not re.match(r"[~./]|[A-Za-z]:\\", value):  # the path of a key file is no secret
            remember(value)


# ---- text and JSON without secrets


def without_known(value: Any) -> Any:
    """`value` (text or JSON) with `[secret]` instead of each known secret; unchanged if no secret is known."""
    return _hide_known(value) if _forms else value


def _hide_known(value: Any) -> Any:
    if isinstance(value, list):
        return [_hide_known(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _hide_known(item) for key, item in cast(dict[str, Any], value).items()}
    if not isinstance(value, str):
        return value
    pieces: list[str] = []
    end = 0
    for index in _prefix_positions(value):
        if index < end:
            continue
        for length in _lengths.get(value[index : index + _PREFIX], ()):
            if value[index : index + length] in _forms:
                pieces += [value[end:index], HIDDEN]
                end = index + length
                break
    return "".join([*pieces, value[end:]]) if pieces else value


def _prefix_positions(text: str) -> Iterable[int]:
    """Positions in `text` of prefixes of known secrets, ascending."""
    prefixes = tuple(_lengths)  # another thread may add to them
    if len(prefixes) <= _MAX_SEARCHED:
        return sorted(index for prefix in prefixes if prefix in text for index in _positions(prefix, text))
    return (index for index in range(len(text) - _PREFIX + 1) if text[index : index + _PREFIX] in _lengths)


def _positions(prefix: str, text: str) -> Iterator[int]:
    index = text.find(prefix)
    while index >= 0:
        yield index
        index = text.find(prefix, index + 1)


def hidden(text: str) -> str:
    """`text` of an error, a log or a traceback without known secrets and text that looks like a secret."""
    remember_environment()
    text = without_known(text)
    if "://" in text or "=" in text:
        text = _IN_URLS.sub(lambda match: f"{match[1] or match[2]}{REDACTED}", text)
    return _without_lookalikes(text)


def in_result(response: dict[str, Any]) -> dict[str, Any]:
    """A tool's result without secrets, to be stored and sent to a model."""
    if isinstance(error := response.get("error"), str):
        response = {**response, "error": hidden(error)}
    return without_known(response)


def redacted(value: Any, name: str = "") -> Any:
    """`value` (JSON) without known secrets, keys, bearer tokens, and the values of fields named like a secret.

    E-mail addresses and other personal data stay.
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
    if any(sign in text for sign in _KEY_SIGNS):  # faster than the pattern
        text = _KEYS.sub(REDACTED, text)
    folded = text.lower()
    if "bearer" in folded or "authorization" in folded:
        text = _AUTH.sub(lambda match: f"{match[1] or match[2]}{REDACTED}", text)
    return text


def refuse_pickle(instance: object) -> NoReturn:
    """The `__reduce_ex__` of an object with secrets.

    Raises:
        ConfigurationError: Always.
    """
    raise ConfigurationError(
        f"a {type(instance).__name__} with secrets cannot be pickled, because a pickle is readable by anyone; "
        "create it where it is used, with secrets from there"
    )


# ---- logs

_cleans_logs = False


def _clean_logs() -> None:
    """Remove secrets from every log record, of any library, from now on.

    Not with a filter: a logger's filters do not see its children's records, and handlers belong to the program.
    """
    global _cleans_logs
    if _cleans_logs:
        return
    _cleans_logs = True
    original_factory = logging.getLogRecordFactory()

    def make_clean_record(*args: Any, **fields: Any) -> logging.LogRecord:
        record = original_factory(*args, **fields)
        if _forms:
            _clean(record)
        return record

    logging.setLogRecordFactory(make_clean_record)


def _clean(record: logging.LogRecord) -> None:
    try:
        message = record.getMessage()
        if (safe := hidden(message)) != message:
            # Some formatters read the arguments, as uvicorn's does.
            arguments: Any = record.args
            record.msg, record.args = _clean_argument(record.msg), tuple(map(_clean_argument, arguments or ()))
            if isinstance(arguments, Mapping):
                named = cast(Mapping[str, Any], arguments)
                record.args = {name: _clean_argument(value) for name, value in named.items()}
            if record.getMessage() != safe:
                record.msg, record.args = safe, None
        if record.exc_info:
            traceback_text = logging.Formatter().formatException(record.exc_info)
            if (safe := hidden(traceback_text)) != traceback_text:
                record.exc_info, record.exc_text = None, safe
    except Exception:  # a malformed record: the handler that writes it reports the error
        return


def _clean_argument(value: Any) -> Any:
    text = str(value)
    return value if (safe := hidden(text)) == text else safe
