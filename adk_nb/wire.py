"""The shape of everything that is stored or sent: snake_case in Python, camelCase in JSON, both read."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """A record that travels as JSON. Keys it does not know are ignored, so an older reader reads a newer record."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        arbitrary_types_allowed=True,
        defer_build=True,  # each record is built when the first is made: an import that makes none is a third cheaper
    )
