"""One example of a question and how it is answered."""

from pydantic import BaseModel, ConfigDict

from adk_nb import types


class Example(BaseModel):
    """What a user says, and what is said and done then."""

    model_config = ConfigDict(extra="forbid")

    input: types.Content
    output: list[types.Content]
    """Words, calls and their results, in order; the role says whose each is."""
