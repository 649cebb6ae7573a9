"""`%%agent --skills`: folders of know-how that an agent loads when it needs them."""

from adk_nb.notebook.registry import Extension

extension = Extension(name="skills", options={"agent": f"{__name__}.options:OPTIONS"})
