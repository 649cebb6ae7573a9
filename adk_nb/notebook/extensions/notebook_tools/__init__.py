"""`%%agent --notebook`: an agent that looks at the variables of this notebook, runs code in it, and reads its cells."""

from traitlets import Enum

from adk_nb.notebook.magics.grammar import AgentOption, Option
from adk_nb.notebook.registry import Extension, Setting

extension = Extension(
    name="notebook-tools",
    settings=[
        Setting(
            "notebook_code",
            Enum(
                ["ask", "never"],
                "ask",
                help="Code that an agent with --notebook wants to run in this kernel: `ask` on a card each time, or "
                "`never`: it cannot.",
            ),
            apply=f"{__name__}.policy:set_code",
        )
    ],
    options={
        "agent": [
            AgentOption(
                option=Option(
                    "--notebook", "it sees the variables and cells of this notebook, and asks before it runs code here"
                ),
                after="tools",
                apply=f"{__name__}.toolset:add_notebook",
            )
        ]
    },
)
