"""Write the golden files of messages, one for each room of the package: `python tests/messages/collect.py`.

A message is a text in the code with four words or more that somebody may read: an error, a refusal, a label, help, or a
note for a model. Read the changed lines of the golden files aloud before you commit them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "adk_nb"
WORDS = 4
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|BEGIN|LOCK|WHERE|FROM)\b")
_INSERTED = re.compile(r"\{[^}]*\}")
_WORD = re.compile(r"(?<![\w<.-])[A-Za-z]{2,}(?![\w>=(\[.])")


def golden_files() -> dict[str, str]:
    """Name of a golden file -> the messages of that room, by file and in the order of the code."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        room = relative.parts[0] if len(relative.parts) > 1 else "package"
        if messages := list(messages_of(path)):
            lines = [f"{relative.as_posix()}", *(f"    {message}" for message in messages), ""]
            rooms.setdefault(room, []).extend(lines)
    return {f"{room}.txt": "\n".join(lines) for room, lines in sorted(rooms.items())}


def messages_of(path: Path) -> Iterator[str]:
    """Yield the messages of one file, each in one line; `{...}` stands for what is inserted."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    yield from _messages(tree, docstrings)


def _messages(node: ast.AST, docstrings: set[int]) -> Iterator[str]:
    if id(node) in docstrings:
        return
    text = _text(node)
    if text is None:
        for child in ast.iter_child_nodes(node):
            yield from _messages(child, docstrings)
    elif len(_WORD.findall(_INSERTED.sub(" ", text))) >= WORDS and not _SQL.match(text):
        yield text.replace("\n", "\\n")


def _text(node: ast.AST) -> str | None:
    """Return the text of a literal, of an f-string, or of a sum of them."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(value) or _placeholder(value) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            texts = _text(left), _text(right)
            return None if None in texts else "".join(text for text in texts if text)
        case _:
            return None


def _placeholder(value: ast.expr) -> str:
    """Return the last name of what is inserted, or `...` for what has no name."""
    match value:
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return "{" + name + "}"
        case _:
            return "{...}"


if __name__ == "__main__":
    for stale in HERE.glob("*.txt"):
        stale.unlink()
    for name, content in golden_files().items():
        (HERE / name).write_text(content, encoding="utf-8")
