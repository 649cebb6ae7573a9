"""Records with secret fields: copies without secrets, and redaction of text."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Self, SupportsIndex, cast

from pydantic import BaseModel, ConfigDict, Field

from adk_nb.redaction import HIDDEN, refuse_pickle, remember, remember_url
from adk_nb.wire import WireModel

_MIN_LENGTH = 6
"""Shorter values are not redacted: they may occur in text by chance."""

Secret = Annotated[str | None, Field(repr=False)]
"""Left out of `repr` and of `public()`."""


class SecretModel(WireModel):
    """A record whose errors and `repr` contain no secrets. `model_dump` does, for storage.

    From construction on, its secrets are redacted in everything that this process writes. It refuses to be pickled.
    """

    model_config = ConfigDict(hide_input_in_errors=True)
    takes_unknown: ClassVar[bool] = True  # google-adk's take any field

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets for redaction."""
        for secret in self.secrets():
            remember(secret)
            remember_url(secret)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.secrets() - {HIDDEN}:  # a public() copy may be pickled
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def public(self) -> Self:
        """A deep copy without secrets, for events, logs and pages."""
        fields = {name: _public(value) for name, value in self if type(self).model_fields[name].repr}
        for name, field in type(self).model_fields.items():
            fields.setdefault(name, None if field.default is None else HIDDEN)
        return type(self).model_construct(_fields_set=self.model_fields_set, **fields)

    def secrets(self) -> set[str]:
        """All secrets in it, at any depth."""
        return set(_secrets(self))


def _public(value: Any) -> Any:
    return value.public() if isinstance(value, SecretModel) else value


def _secrets(record: BaseModel) -> Iterator[str]:
    for name, value in record:
        if isinstance(value, SecretModel):
            yield from _secrets(value)
        elif value and not type(record).model_fields[name].repr:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast(dict[str, Any], value).values():
            yield from _texts(item)


def redact(value: Any, secrets: Iterable[str]) -> Any:
    """Replace each of `secrets` in the texts of a JSON value by `[secret]`."""
    # Longest first: one secret may contain another.
    ordered = sorted((secret for secret in secrets if len(secret) >= _MIN_LENGTH), key=len, reverse=True)
    return _without(value, ordered) if ordered else value


def _without(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, list):
        return [_without(item, secrets) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _without(item, secrets) for key, item in cast(dict[str, Any], value).items()}
    return value
