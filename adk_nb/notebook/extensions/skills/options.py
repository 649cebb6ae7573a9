"""The option of `%%agent` that names folders of skills."""

from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import AgentOption, Option

_SKILLS = "adk_nb.notebook.extensions.skills.skills"

OPTIONS = [
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
