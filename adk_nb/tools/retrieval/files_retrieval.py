"""`FilesRetrieval`: passages of text files that have the words of a question."""

import functools
import logging
import re
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from adk_nb import sync
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.retrieval.base_retrieval_tool import BaseRetrievalTool

logger = logging.getLogger(__name__)

_LONGEST_FILE = 5_000_000
"""Bytes."""
_PASSAGE = 1_000
"""Characters that paragraphs are put together to."""
_MOST_WORDS = 100
"""Of a query."""
_WORD = re.compile(r"\w+")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SCHEMA = "create virtual table passages using fts5 (text, file unindexed, tokenize='porter unicode61')"
_SEARCH = "select file, text from passages where passages match ? order by rank limit ?"

_Seen = dict[Path, tuple[int, int]]


class FilesRetrieval(BaseRetrievalTool):
    """Finds passages by their words, those first that have more and rarer ones of the query (BM25).

    It knows English word endings and no synonyms: it is a search, and no embedding. The model gets `{"passages":
    [{"file", "text"}, ...]}`, the best first; `file` is the path within the folder.
    """

    def __init__(self, *, name: str, description: str, input_dir: str | Path, max_results: int = 3) -> None:
        """Look through a folder, when first asked; again after a file in it has changed.

        Args:
            name: What the model calls it.
            description: What the model is told: what is in the files.
            input_dir: With text in UTF-8, in folders under it too. What is hidden, larger than 5 MB, or linked from
                elsewhere is left out.
            max_results: Passages.

        Raises:
            ConfigurationError: There is no such folder.
        """
        super().__init__(name=name, description=description)
        self.input_dir = Path(input_dir).resolve()
        self.max_results = max_results
        if not self.input_dir.is_dir():
            raise ConfigurationError(f"FilesRetrieval looks through a folder, and {str(input_dir)!r} is none")
        self.bound_to = str(self.input_dir)
        self._lock = threading.Lock()
        self._index: sqlite3.Connection | None = None
        self._let_go: Callable[[], object] = lambda: None
        self._seen: _Seen = {}

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        return {"passages": await sync.blocking(functools.partial(self._found, args["query"]), thread=True)}

    def _found(self, query: str) -> list[dict[str, str]]:
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)[:_MOST_WORDS]))
        if not wanted:
            return []
        with self._lock:
            rows = self._up_to_date().execute(_SEARCH, (wanted, self.max_results)).fetchall()
        return [{"file": file, "text": text} for file, text in rows]

    def _up_to_date(self) -> sqlite3.Connection:
        seen = dict(_files(self.input_dir))
        if self._index is None or seen != self._seen:
            self._let_go()
            self._index = sqlite3.connect(":memory:", check_same_thread=False)
            self._let_go = weakref.finalize(self, self._index.close)
            self._index.execute(_SCHEMA)
            for path in seen:
                rows = [(text, path.relative_to(self.input_dir).as_posix()) for text in _passages(path)]
                self._index.executemany("insert into passages (text, file) values (?, ?)", rows)
            self._seen = seen
        return self._index


def _files(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Each file with what changes when it does."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts) or not path.is_file():
            continue
        about = path.stat()
        if about.st_size <= _LONGEST_FILE and path.resolve() == path:
            yield path, (about.st_mtime_ns, about.st_size)


def _passages(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        logger.info("%s is not looked through: %s", path.name, error)
        return
    held = ""
    for paragraph in _PARAGRAPHS.split(text):
        if held and len(held) + len(paragraph) > _PASSAGE:
            yield held
            held = ""
        held = f"{held}\n\n{paragraph}".strip()
    if held:
        yield held
