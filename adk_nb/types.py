"""The one door to the content types: Content, Part, FunctionCall, GenerateContentConfig and the rest of google-genai's.

Only this file and `models/google_*.py` import google.genai; both are loaded when a cell first needs them.
Source: https://googleapis.github.io/python-genai/genai.html#module-genai.types.
"""

from google.genai.types import *  # pyright: ignore[reportWildcardImportFromLibrary]  # the door hands on all of them
