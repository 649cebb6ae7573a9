"""How texts of answers, calls and states are compared with expectations."""

import unicodedata
from collections.abc import Mapping
from typing import Any, cast


def normalized(value: Any) -> Any:
    """JSON with its texts in Unicode's normal form C: an e with an accent is equal however it was typed."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        return {normalized(key): normalized(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [normalized(item) for item in cast(list[Any], value)]
    return value
