"""The skills of a `%%agent` cell: the toolset of their folders, and notes on what is in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.code_executors.isolation import strictest
from adk_nb.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from adk_nb.errors import InputError, closest
from adk_nb.notebook.magics.output import Host
from adk_nb.notebook.place import folder_of
from adk_nb.notebook.view.document import Note
from adk_nb.skills.catalog import SkillCatalog
from adk_nb.tools.skill_toolset import SkillDiscoveryMode, SkillToolset

_MAX_NAMES = 8
_MAX_PROBLEMS = 8


def skill_folders(host: Host, mark: str, names: Sequence[str]) -> dict[str, Path]:
    """The folders that a cell names, by what it says.

    Raises:
        InputError: A path is not a folder.
    """
    folder = folder_of(host.shell)
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


def add_skills(agent: LlmAgent, folders: Mapping[str, Path]) -> None:
    """Give an agent the toolset of these folders.

    Scripts run with the `code_executor` that its cell names; else in a sandbox, where this machine has one.
    """
    has_executor = "code_executor" in agent.model_fields_set
    executor = None if has_executor else UnsafeLocalCodeExecutor(isolation=strictest())
    toolset = SkillToolset(catalog_of(folders), code_executor=executor, discovery_mode=SkillDiscoveryMode.EAGER)
    agent.tools = [*agent.tools, toolset]


def catalog_of(folders: Mapping[str, Path]) -> SkillCatalog:
    """The skills in these folders now."""
    catalog = SkillCatalog(*folders.values())
    catalog.refresh()
    return catalog


def skill_notes(folders: Mapping[str, Path]) -> list[str]:
    """The names of the skills, and a note for each that is left out."""
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


def rows_of_tools(users: Mapping[str, Mapping[str, Path]]) -> tuple[list[list[str]], list[str]]:
    """A row of `%tools` for each skill of the agents' cells, and a line for each that is left out."""
    agents: dict[tuple[str, str], list[str]] = {}
    rows: dict[tuple[str, str], list[str]] = {}
    problems: dict[str, None] = {}
    for agent, folders in users.items():
        for folder, path in folders.items():
            catalog = catalog_of({folder: path})
            problems |= dict.fromkeys(problem_lines(catalog))
            for name, skill in catalog.skills.items():
                agents.setdefault((folder, name), []).append(agent)
                description = " ".join(skill.frontmatter.description.split())
                approval = "always, of scripts" if skill.has_scripts else ""
                rows[folder, name] = [f"skill {name}", description, approval, folder]
    return [[*row, ", ".join(agents[key])] for key, row in rows.items()], list(problems)
