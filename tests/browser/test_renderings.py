"""Hostile text in the saved forms of a reply, in a real page that typesets mathematics and follows clicks."""

import json

import pytest
from lab import Lab

from adk_nb.notebook.view.document import Table, document
from adk_nb.notebook.view.writers import bundle
from adk_nb.notebook.view.writers.markdown import markdown_safe
from adk_nb.notebook.view.writers.markdown_html import to_html
from tests.support.hostile_texts import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

START = "import json; from IPython.display import display; forms = json.load(open('forms.json'))"
SHOW = "for bundle in forms[{}:{}]: display(bundle, raw=True)"
A_CELL = 40
"""Outputs; a lab hides those of a cell that come after the 50th."""
CONTROL = "display({'text/html': '<p>$x^2$</p>'}, raw=True); display({'text/markdown': '$y^2$'}, raw=True)"
FORMULAS = "return document.querySelectorAll('mjx-container').length"
FOUND = """
const outputs = [...document.querySelectorAll('.jp-CodeCell')].slice(0, -1)
  .flatMap((cell) => [...cell.querySelectorAll('.jp-OutputArea-output')]);
const LINKS = '.jp-RenderedHTMLCommon a[href]'; // in plain text it is the lab that makes links, of whatever has ://
const within = (css) => outputs.flatMap((output) => [...output.querySelectorAll(css)]);
for (const link of within('a')) {
  link.addEventListener('click', (event) => event.preventDefault());
  link.click();
}
return {
  shown: outputs.length,
  math: within('mjx-container, .MathJax').length,
  live: within('img, script, iframe, form, button, object, embed, base, meta').map((node) => node.outerHTML),
  links: [...new Set(within(LINKS).map((link) => link.protocol))].sort(),
};
"""


def test_hostile_text_neither_runs_nor_becomes_mathematics_in_a_real_lab(lab: Lab):
    forms = [{"text/html": to_html(payload)} for payload in PAYLOADS]
    forms += [{"text/markdown": markdown_safe(payload)} for payload in PAYLOADS]
    forms += [
        {form: value} for payload in PAYLOADS for form, value in bundle(document(Table([payload], [[payload]]))).items()
    ]
    shows = [SHOW.format(start, start + A_CELL) for start in range(0, len(forms), A_CELL)]
    path = lab.write("forms.ipynb", START, *shows, CONTROL)
    (path.parent / "forms.json").write_text(json.dumps(forms))
    page = lab.open(path)

    page.run_all()

    page.until(lambda: page.js(FORMULAS) >= 2, "the formulas of the last cell")
    assert page.js(FOUND) == {"shown": len(forms), "math": 0, "live": [], "links": ["http:", "https:"]}
    assert page.alerts() == []
    page.screenshot("renderings")
