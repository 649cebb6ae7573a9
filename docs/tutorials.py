"""A tutorial as a page of the site: its cells as markdown and blocks of code, what they showed as HTML."""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MARK = '<div data-output="{}"></div>'


def page_of(notebook: Path) -> tuple[str, list[str]]:
    """Its markdown, in which a mark stands for each output, and the outputs in order."""
    parts: list[str] = []
    outputs: list[str] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif source.strip():
            fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", source))])
            parts.append(f"{fence}adk-nb\n{source}\n{fence}")
        if shown := "".join(_shown(output) for output in cell.get("outputs", ())):
            parts.append(_MARK.format(len(outputs)))
            outputs.append(f'<div class="nb-output">{shown}</div>')
    return "\n\n".join(parts) + "\n", outputs


def with_outputs(html: str, outputs: list[str]) -> str:
    """Put the outputs where their marks are."""
    for number, shown in enumerate(outputs):
        html = html.replace(_MARK.format(number), shown, 1)
    return html


def _shown(output: dict[str, Any]) -> str:
    """One output as HTML, in the richest form that was saved."""
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(data["text/html"])
    text = "\n".join(output.get("traceback", ())) or "".join(output.get("text") or data.get("text/plain", ""))
    kind = "error" if output["output_type"] == "error" or output.get("name") == "stderr" else "text"
    return f'<pre class="{kind}">{escape(_COLOURS.sub("", text), quote=False)}</pre>'
