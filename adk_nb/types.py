"""The content types of google-genai: Content, Part, FunctionCall, GenerateContentConfig and others.

Only this file and `models/google_*.py` import google.genai; both are loaded when a cell first needs them.
Source: https://googleapis.github.io/python-genai/genai.html#module-genai.types.
"""

from google.genai.types import *  # pyright: ignore[reportWildcardImportFromLibrary]  # all public names
