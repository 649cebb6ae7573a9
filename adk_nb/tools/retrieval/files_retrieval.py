"""`FilesRetrieval`: full-text search over a folder of text files."""

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

_MAX_FILE_BYTES = 5_000_000
"""Larger files are skipped."""
_PASSAGE_CHARS = 1_000
"""Target length of a passage, which joins whole paragraphs."""
_MAX_QUERY_WORDS = 100
_WORD = re.compile(r"\w+")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SCHEMA = "create virtual table passages using fts5 (text, file unindexed, tokenize='porter unicode61')"
# FTS5's `rank` is BM25, the best first. Source: https://www.sqlite.org/fts5.html.
_SEARCH = "select file, text from passages where passages match ? order by rank limit ?"

_Versions = dict[Path, tuple[int, int]]
"""File -> modification time in nanoseconds, and size in bytes."""


class FilesRetrieval(BaseRetrievalTool):
    """Finds passages by their words, ranked by BM25: more and rarer words of the query first.

    English word endings are stemmed; there are no synonyms and no embeddings. The model gets `{"passages": [{"file",
    "text"}, ...]}`, the best first; `file` is the path within the folder.
    """

    def __init__(self, *, name: str, description: str, input_dir: str | Path, max_results: int = 3) -> None:
        """Index a folder at the first query, and again after a file in it has changed.

        Args:
            name: The name for the model.
            description: The description for the model: what the files are about.
            input_dir: Folder of UTF-8 text files, searched recursively. Hidden files, files over 5 MB and links to
                files elsewhere are skipped.
            max_results: Number of passages.

        Raises:
            ConfigurationError: The folder does not exist.
        """
        super().__init__(name=name, description=description)
        self.input_dir = Path(input_dir).resolve()
        self.max_results = max_results
        if not self.input_dir.is_dir():
            raise ConfigurationError(f"FilesRetrieval needs a folder, and {str(input_dir)!r} is not one")
        self.bound_to = str(self.input_dir)
        self._lock = threading.Lock()
        self._index: sqlite3.Connection | None = None
        self._close_index: Callable[[], object] = lambda: None
        self._indexed: _Versions = {}

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Search the files for `query`."""
        if message := self.check(args):
            return {"error": message}
        return {"passages": await sync.blocking(functools.partial(self._search, args["query"]), thread=True)}

    def _search(self, query: str) -> list[dict[str, str]]:
        # Quoted, so that FTS5 does not parse words such as AND or NEAR as operators.
        match_expression = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)[:_MAX_QUERY_WORDS]))
        if not match_expression:
            return []
        with self._lock:
            versions = dict(_files(self.input_dir))
            if self._index is None or versions != self._indexed:
                self._close_index()
                self._index = sqlite3.connect(":memory:", check_same_thread=False)  # guarded by the lock
                self._close_index = weakref.finalize(self, self._index.close)  # also when the tool is collected
                self._index.execute(_SCHEMA)
                for path in versions:
                    passages = [(text, path.relative_to(self.input_dir).as_posix()) for text in _passages(path)]
                    self._index.executemany("insert into passages (text, file) values (?, ?)", passages)
                self._indexed = versions
            rows = self._index.execute(_SEARCH, (match_expression, self.max_results)).fetchall()
        return [{"file": file, "text": text} for file, text in rows]


def _files(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Each file with its modification time and size, which change when it does."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part.startswith(".") for part in relative.parts) or not path.is_file():
            continue
        stat = path.stat()
        if stat.st_size <= _MAX_FILE_BYTES and path.resolve() == path:  # not a link to elsewhere
            yield path, (stat.st_mtime_ns, stat.st_size)


def _passages(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        logger.info("%s is not indexed: %s", path.name, error)
        return
    passage = ""
    for paragraph in _PARAGRAPHS.split(text):
        if passage and len(passage) + len(paragraph) > _PASSAGE_CHARS:
            yield passage
            passage = ""
        passage = f"{passage}\n\n{paragraph}".strip()
    if passage:
        yield passage
