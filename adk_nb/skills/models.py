"""A skill: its front matter, its instructions, and the files beside them.

Source of the fields and their limits: https://agentskills.io/specification, and google-adk 2.13.
"""

import re
import unicodedata
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
"""Lengths in characters."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Control characters, changes of the writing direction, and tags: a reader does not see them, a model does."""


def hidden_character(text: str) -> str:
    """The first character of `text` that a reader cannot see, as `U+202E`; empty if there is none."""
    match = _HIDDEN.search(text)
    return f"U+{ord(match[0]):04X}" if match else ""


class Frontmatter(BaseModel):
    """The facts of a skill that an agent has before it loads the skill. Other keys are kept.

    Raises:
        pydantic.ValidationError: A field is missing, of another type, or too long.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    name: str
    """Lower-case words of letters and digits, joined by hyphens; the name of the skill's folder."""
    description: str
    """What the skill does, and when to load it."""
    license: str | None = None
    compatibility: str | None = None
    """What the skill needs of its surroundings."""
    allowed_tools: str | None = Field(default=None, alias="allowed-tools", serialization_alias="allowed-tools")
    """Kept and shown; it allows nothing here: approvals are the user's."""
    metadata: dict[str, Any] = {}
    """`adk_inject_state: true` fills `{key}` in the instructions from the session's state; `adk_additional_tools` names
    tools that an agent has once it has loaded the skill."""

    @property
    def additional_tools(self) -> list[str]:
        """The names in `adk_additional_tools`."""
        return self.metadata.get("adk_additional_tools", [])

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        name = unicodedata.normalize("NFKC", name)
        if len(name) > MAX_NAME:
            raise ValueError(f"a name has at most {MAX_NAME} characters, and this one {len(name):,}")
        if not _NAME.fullmatch(name):
            raise ValueError("a name has lower-case letters, digits and single hyphens inside, as in trip-planner")
        return name

    @field_validator("description")
    @classmethod
    def _check_description(cls, description: str) -> str:
        if not description.strip():
            raise ValueError("it is empty; say what the skill does and when to load it")
        if len(description) > MAX_DESCRIPTION:
            raise ValueError(f"it has {len(description):,} characters, and at most {MAX_DESCRIPTION:,} are allowed")
        if hidden := hidden_character(description):
            raise ValueError(f"it has a character that cannot be seen ({hidden})")
        return description

    @field_validator("compatibility")
    @classmethod
    def _check_compatibility(cls, compatibility: str | None) -> str | None:
        if compatibility is not None and len(compatibility) > MAX_COMPATIBILITY:
            raise ValueError(f"it has {len(compatibility):,} characters, and at most {MAX_COMPATIBILITY} are allowed")
        return compatibility

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(metadata.get("adk_inject_state", False), bool):
            raise ValueError("adk_inject_state must be true or false")
        names = metadata.get("adk_additional_tools", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in cast(list[Any], names)):
            raise ValueError("adk_additional_tools must be a list of names")
        return metadata


class Script(BaseModel):
    """The source of a script."""

    src: str

    def __str__(self) -> str:
        return self.src


class Resources(BaseModel):
    """The files of a skill beside SKILL.md, by their path in `references/`, `assets/` or `scripts/`."""

    references: dict[str, str | bytes] = {}
    assets: dict[str, str | bytes] = {}
    scripts: dict[str, Script] = {}

    def get_reference(self, reference_id: str) -> str | bytes | None:
        """The content of a file in `references/`. None: there is none of that path."""
        return self.references.get(reference_id)

    def get_asset(self, asset_id: str) -> str | bytes | None:
        """The content of a file in `assets/`. None: there is none of that path."""
        return self.assets.get(asset_id)

    def get_script(self, script_id: str) -> Script | None:
        """A script in `scripts/`. None: there is none of that path."""
        return self.scripts.get(script_id)

    def list_references(self) -> list[str]:
        """The paths in `references/`."""
        return list(self.references)

    def list_assets(self) -> list[str]:
        """The paths in `assets/`."""
        return list(self.assets)

    def list_scripts(self) -> list[str]:
        """The paths in `scripts/`."""
        return list(self.scripts)

    @property
    def files(self) -> dict[str, str | bytes]:
        """All files by their path in the skill's folder."""
        return {
            **{f"references/{name}": content for name, content in self.references.items()},
            **{f"assets/{name}": content for name, content in self.assets.items()},
            **{f"scripts/{name}": script.src for name, script in self.scripts.items()},
        }


class Skill(BaseModel):
    """A skill: front matter, instructions, and files."""

    frontmatter: Frontmatter
    instructions: str
    """Markdown: the text of SKILL.md below the front matter."""
    resources: Resources = Resources()

    @property
    def name(self) -> str:
        """The name in the front matter."""
        return self.frontmatter.name

    @property
    def description(self) -> str:
        """The description in the front matter."""
        return self.frontmatter.description
