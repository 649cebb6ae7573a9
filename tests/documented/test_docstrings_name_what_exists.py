"""`Class.member` in backticks, in docstrings, comments and messages of the package, leads somewhere."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pydantic
import pytest

import adk_nb

ROOT = Path(adk_nb.__file__).parent
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
REFERENCE = re.compile(r"`([A-Z]\w*)\.([A-Za-z_]\w*)(?:\(\))?`")


def members_of(node: ast.ClassDef) -> set[str]:
    """What a class defines, and what its methods set on `self`."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(part.name)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found.add(part.id)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            found.add(part.attr)
    return found


def classes() -> dict[str, set[str] | None]:
    """Our classes by name, with what they and their bases have; None for one with a base that is not ours."""
    members: dict[str, set[str]] = defaultdict(set)
    members |= {"BaseModel": set(dir(pydantic.BaseModel)), "Protocol": set(), "ABC": set(), "Generic": set()}
    bases: dict[str, set[str]] = defaultdict(set)
    for node in (node for text in SOURCES.values() for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.ClassDef):
            members[node.name] |= members_of(node)
            bases[node.name] |= {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}

    def whole(name: str) -> set[str] | None:
        parts = [members.get(name), *(whole(base) for base in bases[name])]
        return None if None in parts else {member for part in parts if part for member in part}

    return {name: whole(name) for name in [*members]}


@pytest.mark.slow
def test_a_member_that_is_named_in_backticks_is_there():
    have = classes()

    dead = [
        f"{path.relative_to(ROOT.parent)}:{number} {owner}.{member}"
        for path, text in SOURCES.items()
        for number, line in enumerate(text.splitlines(), 1)
        for owner, member in REFERENCE.findall(line)
        if (known := have.get(owner)) and member not in known
    ]

    assert not dead, "\n".join(dead)
