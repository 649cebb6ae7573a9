"""One example of a question and how it is answered."""

from pydantic import BaseModel, ConfigDict

from adk_nb import types


class Example(BaseModel):
    """A message of a user, and the answers and calls that follow."""

    model_config = ConfigDict(extra="forbid")

    input: types.Content
    output: list[types.Content]
    """Words, calls and their results, in order; the role says whose each is."""
