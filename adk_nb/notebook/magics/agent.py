"""What `%%agent` and `%%workflow` do: a line, the options above the text, and the text become a definition."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.errors import InputError, closest
from adk_nb.notebook import settings
from adk_nb.notebook.magics.arguments import Grammar, Option
from adk_nb.notebook.magics.grammar import AGENT, WORKFLOW
from adk_nb.notebook.registry import agent_options
from adk_nb.notebook.registry.agent_options import FieldValue
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.notebook import Notebook

_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


@dataclass(frozen=True)
class Defined:
    """What came of a cell."""

    name: str
    told: list[str]
    has_picture: bool
    silent: bool


def define_agent(notebook: Notebook, line: str, cell: str | None, number: int) -> Defined:
    """Define the agent of a `%%agent` cell, In[number].

    Raises:
        UserError: The cell does not say what can be; all is as it was.
    """
    asked, body, note = _asked(AGENT, line, cell)
    is_llm = (asked.kind or "llm") == "llm"
    if not is_llm:
        _check_team(asked)
    if not body.strip():
        said = "has no instruction; write it below the line, see %%agent?"
        said = said if is_llm else "names no agents; write them below the line, as draft -> review"
        raise InputError(f"%%agent {asked.name} {said}")
    model = asked.model or ""
    wanted = AgentDefinition(
        name=asked.name,
        kind=asked.kind or "llm",
        cell=number,
        instruction=body.strip("\n") if is_llm else body.rstrip(),
        model=model,
        model_object=notebook.model_named(model) if model else None,
        tools=tuple(dict.fromkeys(asked.tools or ())),
        members=tuple(asked.sub or ()),
        mode=asked.mode,
        description=asked.description or "",
        output_key=asked.output_key,
        max_iterations=asked.max_iterations or (settings.now.max_iterations if is_llm else None),
        raw=asked.raw,
        fields=_fields(asked, notebook.variables),
        source=f"%%agent {line}\n{cell or ''}".rstrip(),
    )
    told = notebook.define_agent(wanted, root=asked.root, replace=asked.replace)
    return Defined(asked.name, told + note, bool(wanted.members) or not is_llm, asked.silent)


def define_workflow(notebook: Notebook, line: str, cell: str | None, number: int) -> Defined:
    """Define the graph of a `%%workflow` cell; the rest as `define_agent`."""
    asked, body, note = _asked(WORKFLOW, line, cell)
    if not body.strip():
        raise InputError(f"%%workflow {asked.name} has no edges; write START -> draft below the line")
    wanted = AgentDefinition(
        name=asked.name,
        kind="workflow",
        cell=number,
        instruction=body.rstrip(),
        description=asked.description or "",
        max_concurrency=asked.max_concurrency,
        source=f"%%workflow {line}\n{cell or ''}".rstrip(),
    )
    told = notebook.define_agent(wanted, root=asked.root, replace=asked.replace)
    return Defined(asked.name, told + note, True, asked.silent)


def _asked(grammar: Grammar, line: str, cell: str | None) -> tuple[Any, str, list[str]]:
    """The line with the options above the text, the text, and what there is to say of it."""
    asked = _parsed(grammar, line, cell)
    mark = f"{asked.mark} {asked.name}"
    matter, body = agent_options.split_front_matter(cell or "", mark)
    if matter:
        _lay_under(asked, matter, grammar, f"{mark}, front matter")
    elif agent_options.looks_like_options(body, [one.name for one in grammar.options]):
        return asked, body, ["the text begins like options; they count as such between two lines ---"]
    return asked, body, []


def _parsed(grammar: Grammar, line: str, cell: str | None) -> Any:
    try:
        return grammar.parse(line, cell)
    except InputError:
        if "->" not in line and "→" not in line:
            raise
        raise InputError(f"%%{grammar.name}: names with arrows stand below the line, not on it") from None


def _lay_under(asked: Any, matter: agent_options.FrontMatter, grammar: Grammar, where: str) -> None:
    """Let the options of the front matter count where the line says nothing."""
    known = {one.name: one for one in grammar.options}
    for key, said in matter.texts.items():
        option = known.get(key.replace("_", "-"))
        if option is None:
            raise _unknown(key, known, where)
        name = option.name.replace("-", "_")
        if name == "set":
            asked.set = _set_in(matter.values[key], where) + (asked.set or [])
        elif getattr(asked, name) in (None, False):
            setattr(asked, name, _converted(option, key, said, where))


def _unknown(key: str, known: Mapping[str, Option], where: str) -> InputError:
    own = {"name": "the name stands behind %%agent", "instruction": "the instruction stands below the second ---"}
    near = closest(key.replace("_", "-"), known)
    hint = own.get(key) or (f"did you mean {near}?" if near else "")
    if not hint and "set" in known:
        hint = "a field that has no option stands under set:"
    return InputError(f"{where}: there is no option {key!r}; {hint or 'there is ' + ', '.join(known)}")


def _set_in(said: Any, where: str) -> list[Any]:
    if not isinstance(said, dict):
        raise InputError(f"{where}: set holds fields, as set: {{include_contents: none}}")
    return [(str(name), value) for name, value in cast(dict[Any, Any], said).items()]


def _converted(option: Option, key: str, said: Any, where: str) -> Any:
    if isinstance(said, list):
        said = ",".join(map(str, cast(list[Any], said)))
    if not isinstance(said, str):
        raise InputError(f"{where}: {key} is text, or a list of names")
    if not option.value:
        if said.lower() not in (*_TRUE, *_FALSE):
            raise InputError(f"{where}: {key} is true or false, and not {said!r:.60}")
        return said.lower() in _TRUE
    try:
        return option.convert(said.strip())
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{where}: {key}: {error}") from None


def _check_team(asked: Any) -> None:
    if asked.sub:
        raise InputError(f"{asked.mark} --kind {asked.kind} has no --sub; write the names of its agents below the line")
    for option in ("model", "tools", "output-key", "output-schema", "input-schema", "mode", "set"):
        if getattr(asked, option.replace("-", "_")):
            raise InputError(f"{asked.mark} --kind {asked.kind} has no --{option}; give it to its agents")
    if asked.max_iterations and asked.kind != "loop":
        raise InputError(f"{asked.mark} --kind {asked.kind} makes one pass; --max-iterations goes with --kind loop")


def _fields(asked: Any, variables: Mapping[str, Any]) -> dict[str, FieldValue]:
    found: dict[str, FieldValue] = {}
    given: list[Any] = asked.set or []
    for said in given:
        name, value = cast(tuple[str, Any], said) if isinstance(said, tuple) else _pair(said, asked.mark)
        found[name] = agent_options.field_of(f"{asked.mark} --set", name, value, variables)
    for option in ("input-schema", "output-schema"):
        if name := getattr(asked, option.replace("-", "_")):
            found[option.replace("-", "_")] = agent_options.schema_of(f"{asked.mark} --{option}", name, variables)
    return found


def _pair(word: str, mark: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not (name and sign):
        raise InputError(f"{mark} --set: {word!r:.60} is no field=value; write --set include_contents=none")
    return name, value
