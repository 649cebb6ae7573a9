"""The skills in some folders, as they are now: a changed, new or removed skill is seen at the next look."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adk_nb.errors import InputError
from adk_nb.skills.folder import (
    SkillFolder,
    read_front_matter,
    read_skill,
    resolved,
    scan_folder,
    skill_folders,
    skill_md_of,
)
from adk_nb.skills.models import Frontmatter, Skill

MAX_SKILLS = 100
"""Skills of one folder; the description of each is part of every request."""


@dataclass(frozen=True)
class ListedSkill:
    """A skill in a catalog, not yet loaded."""

    frontmatter: Frontmatter
    has_scripts: bool
    path: Path | None = None
    """Its folder. None: it was made in Python."""


class SkillCatalog:
    """The skills in folders.

    Args:
        folders: Each is the folder of one skill, or a folder with such folders.
    """

    def __init__(self, *folders: str | Path) -> None:
        self.folders = [Path(folder).expanduser() for folder in folders]
        self.skills: dict[str, ListedSkill] = {}
        """By name, as they were at the last `refresh`."""
        self.problems: dict[str, str] = {}
        """Name of a folder -> the reason why its skill is left out."""
        self._read: dict[Path, tuple[tuple[int, int, int], Frontmatter | str]] = {}
        """Folder -> the mark of its SKILL.md when it was read last, and what it was: front matter, or a problem."""

    def refresh(self) -> None:
        """Look at the folders again. A skill that cannot be used is left out, and the others are offered."""
        skills, problems = dict[str, ListedSkill](), dict[str, str]()
        for folder in self.folders:
            try:
                paths = [folder] if skill_md_of(folder) else skill_folders(folder)
            except (InputError, OSError) as error:
                problems[str(folder)] = str(error)
                continue
            if len(paths) > MAX_SKILLS:
                problems[folder.name] = f"of {len(paths):,} skills in it the first {MAX_SKILLS} by name are offered"
            for path in paths[:MAX_SKILLS]:
                try:
                    skill = self._listed(path, folder, skills)
                    skills[skill.frontmatter.name] = skill
                except (InputError, OSError) as error:
                    problems[path.name if path.name not in problems else str(path)] = str(error)
        self.skills, self.problems = skills, problems

    def load(self, name: str) -> Skill | None:
        """The skill of that name, as it is now. None: there is none.

        Raises:
            InputError: It cannot be used any more.
        """
        listed = self.skills.get(name)
        return read_skill(scan_folder(listed.path)) if listed and listed.path else None

    def _listed(self, path: Path, folder: Path, others: Mapping[str, ListedSkill]) -> ListedSkill:
        if path.is_symlink() and path != folder and not resolved(path).is_relative_to(resolved(folder)):
            raise InputError(f"it is a link that leads out of {folder.name}")
        skill = scan_folder(path)
        frontmatter = self._front_matter(skill)
        if other := others.get(frontmatter.name):
            raise InputError(f"{_shown(other.path)} has that name, too")
        return ListedSkill(frontmatter, skill.has_scripts, skill.path)

    def _front_matter(self, skill: SkillFolder) -> Frontmatter:
        mark, front_matter = self._read.get(skill.path, ((), ""))
        if mark != skill.mark:
            try:
                front_matter = read_front_matter(skill)[0]
            except InputError as error:
                front_matter = str(error)
            self._read[skill.path] = skill.mark, front_matter
        if isinstance(front_matter, str):
            raise InputError(front_matter)
        return front_matter


class FixedSkills:
    """Skills that were made or loaded in Python.

    Raises:
        InputError: Two have one name.
    """

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._by_name: dict[str, Skill] = {}
        for skill in skills:
            if skill.name in self._by_name:
                raise InputError(f"two skills are named {skill.name!r}; leave one out")
            self._by_name[skill.name] = skill
        self.skills = {
            name: ListedSkill(skill.frontmatter, bool(skill.resources.scripts)) for name, skill in self._by_name.items()
        }
        """By name."""
        self.problems: dict[str, str] = {}
        """None: they were read before."""

    def refresh(self) -> None:
        """Do nothing: they do not change."""

    def load(self, name: str) -> Skill | None:
        """The skill of that name. None: there is none."""
        return self._by_name.get(name)


def format_skills_as_xml(skills: Iterable[Frontmatter]) -> str:
    """Names and descriptions for a model, each description on one line and without markup of its own.

    Source of the form: google-adk 2.13.
    """
    lines: list[str] = []
    for skill in skills:
        description = html.escape(" ".join(skill.description.split()))
        lines += [
            "<skill>",
            "<name>",
            skill.name,
            "</name>",
            "<description>",
            description,
            "</description>",
            "</skill>",
        ]
    return "\n".join(["<available_skills>", *lines, "</available_skills>"])


def _shown(path: Path | None) -> str:
    return f"{path.parent.name}/{path.name}" if path else "another folder"
