"""Engines that distribute the runs of an app over several processes."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
