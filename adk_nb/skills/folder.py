"""Read skills from folders: SKILL.md, and the files in `references/`, `assets/` and `scripts/`, within limits."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from adk_nb.errors import InputError, closest
from adk_nb.skills.front_matter import parse_skill
from adk_nb.skills.models import Frontmatter, Resources, Script, Skill, hidden_character

MAX_SKILL_MD = 100_000
"""Size of SKILL.md in bytes; the specification recommends less than 500 lines."""
MAX_FILES, MAX_BYTES = 500, 16 * 1024 * 1024
"""Limits of a skill's files together."""
MAX_SCRIPT = 50_000
"""Size of a script in bytes: a person has to read it before it runs."""
_NAMES = ("SKILL.md", "skill.md")
_PARTS = ("references", "assets", "scripts")
_CACHE = "__pycache__"


@dataclass(frozen=True)
class SkillFolder:
    """The files of one skill as they are on the disk, checked and not yet read."""

    path: Path
    """Without links."""
    skill_md: Path
    mark: tuple[int, int, int]
    """Changes with SKILL.md: its inode, size and modification time."""
    files: dict[str, Path]
    """By their path in the folder, in order; as `scripts/report.py`."""

    @property
    def has_scripts(self) -> bool:
        """True if it has a file in `scripts/`."""
        return any(name.startswith("scripts/") for name in self.files)


def scan_folder(folder: str | Path) -> SkillFolder:
    """The files of the skill in a folder.

    Raises:
        InputError: There is no SKILL.md; a link leads out of the folder, or to itself; a file is not regular, or its
            name cannot be shown; there are too many files, or they are too large.
    """
    path = resolved(Path(folder).expanduser())
    skill_md = skill_md_of(path)
    if skill_md is None:
        raise InputError(f"there is no SKILL.md in {str(folder)!r}{_near_folder(path)}")
    file_stat = _checked(skill_md, path)
    if file_stat.st_size > MAX_SKILL_MD:
        raise InputError(f"{skill_md.name} has {file_stat.st_size:,} bytes, and at most {MAX_SKILL_MD:,} are allowed")
    files: dict[str, Path] = {}
    size = 0
    for file in _walk(path):
        name = file.relative_to(path).as_posix()
        if hidden := hidden_character(name) or ("U+000A" if "\n" in name else ""):
            raise InputError(f"the name of a file has a character that cannot be seen ({hidden})")
        file_size = _checked(file, path).st_size
        if name.startswith("scripts/") and file_size > MAX_SCRIPT:
            raise InputError(f"{name!r} has {file_size:,} bytes, and a script may have {MAX_SCRIPT:,}")
        size += file_size
        files[name] = file
        if len(files) > MAX_FILES:
            raise InputError(f"it has more than {MAX_FILES} files")
        if size > MAX_BYTES:
            raise InputError(f"its files have more than {MAX_BYTES // 1024**2} MB together")
    # With the inode: editors replace a file, which may keep size and time.
    mark = (file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns)
    return SkillFolder(path, skill_md, mark, dict(sorted(files.items())))


def skill_md_of(folder: Path) -> Path | None:
    """The SKILL.md of a folder. None: it is not the folder of a skill."""
    # lexists: a dangling link is a broken skill, not a folder without one.
    return next((folder / name for name in _NAMES if os.path.lexists(folder / name)), None)


def read_front_matter(skill: SkillFolder) -> tuple[Frontmatter, str]:
    """The front matter of a skill, and its instructions.

    Raises:
        InputError: SKILL.md is wrong, or names another skill than its folder.
    """
    content = _read(skill.skill_md)
    if isinstance(content, bytes):
        raise InputError(f"{skill.skill_md.name} is not UTF-8 text")
    frontmatter, instructions = parse_skill(content)
    # agentskills.io: the name must be that of the folder.
    if frontmatter.name != skill.path.name:
        raise InputError(f"its name is {frontmatter.name!r}, and its folder is {skill.path.name!r}; give both one name")
    return frontmatter, instructions


def read_skill(skill: SkillFolder) -> Skill:
    """All of a skill, as it is now. Raises as `read_front_matter`."""
    frontmatter, instructions = read_front_matter(skill)
    parts: dict[str, dict[str, str | bytes]] = {part: {} for part in _PARTS}
    for name, file in skill.files.items():
        part, _, rest = name.partition("/")
        parts[part][rest] = _read(file)
    scripts = {name: Script(src=source) for name, source in parts["scripts"].items() if isinstance(source, str)}
    resources = Resources(references=parts["references"], assets=parts["assets"], scripts=scripts)
    return Skill(frontmatter=frontmatter, instructions=instructions, resources=resources)


def load_skill_from_dir(skill_dir: str | Path) -> Skill:
    """The skill in a folder; a file in `scripts/` that is not text is left out.

    Raises:
        InputError: The folder holds no skill, or one that cannot be used; the message has the reason.
    """
    try:
        return read_skill(scan_folder(skill_dir))
    except InputError as error:
        raise InputError(f"skill {Path(skill_dir).name!r} cannot be used: {error}") from None


def load_skills_from_dir(skills_dir: str | Path) -> list[Skill]:
    """The skills in the folders in a folder, by name.

    Raises:
        InputError: There is no such folder, or one of the skills cannot be used.
    """
    return [load_skill_from_dir(folder) for folder in skill_folders(skills_dir)]


def list_skills_in_dir(skills_base_path: str | Path) -> dict[str, Frontmatter]:
    """The front matters of the skills in the folders in a folder, by name. Raises as `load_skills_from_dir`."""
    return {skill.name: skill.frontmatter for skill in load_skills_from_dir(skills_base_path)}


def skill_folders(folder: str | Path) -> list[Path]:
    """The folders in a folder that have a SKILL.md, by name.

    Raises:
        InputError: There is no such folder.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}{_near_folder(path)}")
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and skill_md_of(entry))


def _near_folder(path: Path) -> str:
    parent = path.parent
    names = [entry.name for entry in parent.iterdir() if entry.is_dir()] if parent.is_dir() else []
    near = None if path.is_dir() else closest(path.name, names)
    return f"; did you mean {near!r}?" if near else ""


def _walk(path: Path) -> Iterator[Path]:
    for part in _PARTS:
        if (path / part).is_symlink():
            _checked_link(path / part, path)
        for folder, folders, names in os.walk(path / part, followlinks=False):
            # In place: os.walk descends into what is left in the list.
            folders[:] = sorted(name for name in folders if name != _CACHE)
            for name in folders:
                _checked_link(Path(folder, name), path)
            yield from (Path(folder, name) for name in sorted(names))


def _checked(file: Path, folder: Path) -> os.stat_result:
    """The stat of a file that is to be read."""
    _checked_link(file, folder)
    try:
        file_stat = file.stat()
    except OSError as error:
        raise InputError(f"{_relative(file, folder)!r} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(file_stat.st_mode):  # reading a pipe would wait for ever
        raise InputError(f"{_relative(file, folder)!r} is not a regular file")
    return file_stat


def _checked_link(path: Path, folder: Path) -> None:
    # Else a downloaded skill could hand the user's files to a model.
    if path.is_symlink() and not resolved(path).is_relative_to(folder):
        raise InputError(f"{_relative(path, folder)!r} is a link that leads out of its folder")


def resolved(path: Path) -> Path:
    """The path without links; a part of it that does not exist is kept.

    Raises:
        InputError: It is a link that leads back to itself. (Path.resolve raises RuntimeError, or nothing, by version.)
    """
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path.name!r} is a link that leads back to itself") from None
        return Path(os.path.realpath(path))


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _read(file: Path) -> str | bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file.name!r} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return content
