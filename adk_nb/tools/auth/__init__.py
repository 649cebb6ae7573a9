"""Credentials of tools: OAuth 2 and OpenID Connect, and what a credential is exchanged for."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
