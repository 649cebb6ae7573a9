"""Examples to learn from, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseExampleProvider": "adk_nb.examples.base_example_provider",
        "Example": "adk_nb.examples.example",
    },
)
