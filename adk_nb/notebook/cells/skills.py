"""The skills of a `%%agent` cell: the toolset of their folders, and notes on what is in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from adk_nb.code_executors.isolation import Level, available
from adk_nb.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from adk_nb.errors import InputError, closest
from adk_nb.notebook.view.document import Note
from adk_nb.skills.catalog import SkillCatalog
from adk_nb.tools.skill_toolset import SkillDiscoveryMode, SkillToolset

_MAX_NAMES = 8
_MAX_PROBLEMS = 8


def skill_folders(mark: str, names: Sequence[str], folder: Path) -> dict[str, Path]:
    """The folders that a cell names, by what it says.

    Args:
        mark: As it is typed, for errors.
        names: Of folders.
        folder: Where a relative path starts.

    Raises:
        InputError: A path is not a folder.
    """
    folders: dict[str, Path] = {}
    for name in names:
        path = folder / Path(name).expanduser()
        if path.is_file():
            raise InputError(f"{mark}: {name} is a file; name its folder, as --skills {Path(name).parent}")
        if not path.is_dir():
            entries = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
            near = closest(path.name, entries)
            hint = f"did you mean {str(Path(name).parent / near)!r}?" if near else f"a relative path starts in {folder}"
            raise InputError(f"{mark}: there is no folder {name!r}; {hint}")
        folders[name] = path
    return folders


def skill_toolset(folders: Mapping[str, Path], *, has_executor: bool) -> SkillToolset:
    """The toolset of these folders. Scripts run in a sandbox where this machine has one.

    `has_executor`: they run with the `code_executor` that the agent's cell names.
    """
    executor = None if has_executor else UnsafeLocalCodeExecutor(isolation=script_isolation())
    return SkillToolset(catalog_of(folders), code_executor=executor, discovery_mode=SkillDiscoveryMode.EAGER)


def catalog_of(folders: Mapping[str, Path]) -> SkillCatalog:
    """The skills in these folders now."""
    catalog = SkillCatalog(*folders.values())
    catalog.refresh()
    return catalog


def script_isolation() -> Level:
    """The strictest level that works on this machine."""
    if available(sandbox=True):
        return "sandbox"
    return "processes" if available() else "none"


def skill_notes(folders: Mapping[str, Path]) -> list[str]:
    """The names of the skills, and a note for each that is left out."""
    if not folders:
        return []
    catalog = catalog_of(folders)
    names = list(catalog.skills)
    more = f" and {len(names) - _MAX_NAMES} more, see %tools" if len(names) > _MAX_NAMES else ""
    listed = f"{len(names)} skill{'' if len(names) == 1 else 's'}: {', '.join(names[:_MAX_NAMES])}{more}"
    problems = problem_lines(catalog)
    shelf = ", ".join(folders)
    none = (
        f"no skill of {shelf} can be used"
        if problems
        else f"no skill yet in {shelf}; write a folder with a SKILL.md in it"
    )
    notes = [listed if names else Note(none)]
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [f"{len(problems) - _MAX_PROBLEMS} more are left out; type %tools"]
    return [*notes, *map(Note, problems)]


def problem_lines(catalog: SkillCatalog) -> list[str]:
    """A line for each skill that is left out."""
    return [f"skill {name!r:.100} is left out: {reason}" for name, reason in catalog.problems.items()]
