"""axe-core on a page: what a person could not see, reach or be told of the live view."""

from pathlib import Path
from typing import Any

from lab import Page

CORE = Path(__file__).parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """
    if (!window.axe) {
        const script = document.createElement("script");
        script.textContent = arguments[0];
        document.head.append(script);
    }
    const found = await axe.run(arguments[1], {resultTypes: ["violations", "incomplete"]});
    const told = (rules) => rules.flatMap(({id, nodes}) => nodes.map((one) => [id, one.failureSummary, one.html]));
    return {violations: told(found.violations), open: told(found.incomplete), passed: found.passes.length};
"""


def violations(page: Page, css: str = ".adknb-root") -> list[Any]:
    """Rule, what is wrong and the element, of all that is broken in what `css` selects.

    Rules of WCAG 2.2 AA and axe's best practices. A contrast that could not be told is broken too.
    """
    assert CORE.exists(), "axe-core is not there; type: make axe"
    result = page.js(_RUN, CORE.read_text(encoding="utf-8"), css)
    assert result["passed"] > 10, "axe-core has looked at nothing"
    return [*result["violations"], *(item for item in result["open"] if item[0] == "color-contrast")]
