"""Serve an agent over HTTP on this machine: ADK's paths, AG-UI, A2A and MCP."""

from typing import Any

from adk_nb.lazy import face
from adk_nb.serving.extra import check_extra

_load, __dir__ = face(__name__)


def __getattr__(name: str) -> Any:
    """Load a public name, if the packages of the extra are there."""
    if name in __dir__():
        check_extra()
    return _load(name)
