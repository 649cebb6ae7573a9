"""Records that hold secrets: which fields are secret, a copy without them, and text without them."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Self, SupportsIndex, cast

from pydantic import BaseModel, ConfigDict, Field

from adk_nb.redaction import HIDDEN, refuse_pickle, remember, remember_url
from adk_nb.wire import WireModel

_SHORTEST = 6
"""Characters. What is shorter stands in text by chance, and is not worth the name."""

Secret = Annotated[str | None, Field(repr=False)]
"""Not shown by `repr`, and not in `public()`."""


class Guarded(WireModel):
    """A record whose errors and whose `repr` tell no secrets. `model_dump` does: it is for whoever keeps them.

    From when it is made, its secrets are hidden in whatever this process tells. It is not pickled while it holds any.
    """

    model_config = ConfigDict(hide_input_in_errors=True)
    takes_unknown: ClassVar[bool] = True  # google-adk's take any field

    def model_post_init(self, context: Any, /) -> None:
        for secret in self.secrets():
            remember(secret)
            remember_url(secret)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.secrets() - {HIDDEN}:
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def public(self) -> Self:
        """A copy without secrets, in depth: what an event, a log or a page may hold."""
        shown = {name: _public(value) for name, value in self if type(self).model_fields[name].repr}
        for name, field in type(self).model_fields.items():
            shown.setdefault(name, None if field.default is None else HIDDEN)
        return type(self).model_construct(_fields_set=self.model_fields_set, **shown)

    def secrets(self) -> set[str]:
        """The secrets it holds, in depth."""
        return set(_secrets(self))


def _public(value: Any) -> Any:
    return value.public() if isinstance(value, Guarded) else value


def _secrets(record: BaseModel) -> Iterator[str]:
    for name, value in record:
        if isinstance(value, Guarded):
            yield from _secrets(value)
        elif value and not type(record).model_fields[name].repr:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in cast(dict[str, Any], value).values():
            yield from _texts(one)


def without(value: Any, secrets: Iterable[str]) -> Any:
    """`value`, which is JSON, with `[secret]` for each of `secrets` in its texts."""
    known = sorted((one for one in secrets if len(one) >= _SHORTEST), key=len, reverse=True)
    return _without(value, known) if known else value


def _without(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for one in secrets:
            value = value.replace(one, HIDDEN)
        return value
    if isinstance(value, list):
        return [_without(one, secrets) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _without(one, secrets) for key, one in cast(dict[str, Any], value).items()}
    return value
