"""`%%agent --skills`: folders of know-how that an agent loads when it needs them."""

from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import AgentOption, Option
from adk_nb.notebook.registry import Extension

_SKILLS = f"{__name__}.skills"

extension = Extension(
    name="skills",
    options={
        "agent": [
            AgentOption(
                option=Option(
                    "--skills DIR",
                    "a folder of skills: folders with a SKILL.md, which it loads when it needs them; several: a,b",
                    names="folder",
                    convert=values.names,
                ),
                after="tools",
                check=f"{_SKILLS}:skill_folders",
                apply=f"{_SKILLS}:add_skills",
                notes=f"{_SKILLS}:skill_notes",
                listed=f"{_SKILLS}:rows_of_tools",
            )
        ]
    },
)
