"""`%doctor`: what is installed and set, how runs are shown, and what to type next."""

from adk_nb.notebook.doctor import findings
from adk_nb.notebook.magics.grammar import Grammar
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, whole_table

DOCTOR = Grammar(
    "doctor",
    "Look at what is installed, which keys are set (by name), how runs are shown and whether they can run, and say "
    "what to type next.",
    examples=["%doctor", "%doctor  # before you ask for help: it shows no key", "report = %doctor"],
)


def doctor(host: Host, line: str, cell: str | None) -> Output:
    """Look at this installation."""
    DOCTOR.parse(line, cell)
    rows = [[finding.about, finding.found, finding.next] for finding in findings(host.shell, host.settings)]
    return whole_table(["look at", "found", "type next"], rows)
