"""What is known of Google's models before google-genai is loaded: their names, and whether there is a key for them."""

import os

from adk_nb.redaction import remember

GEMINI_NAMES = (
    r"(models/)?gemini-.*",
    r"model-optimizer-.*",
    r"projects/.+/locations/.+/endpoints/.+",
    r"projects/.+/locations/.+/publishers/google/models/gemini.+",
)
"""Regular expressions for the names Gemini answers to."""
KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""The first that is set is used, as in google-genai."""
_VERTEX_VARIABLES = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")


def key_from_environment() -> str | None:
    """The Gemini API's key, or None."""
    key = next((key for name in KEY_VARIABLES if (key := os.environ.get(name, "").strip())), None)
    remember(key)
    return key


def uses_vertex() -> bool:
    """Whether google-genai is told to go through Vertex AI, which takes Google Cloud credentials instead of a key."""
    said = next((value for name in _VERTEX_VARIABLES if (value := os.environ.get(name)) is not None), "")
    return said.lower() in ("true", "1")
