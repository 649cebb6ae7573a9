"""Run the tutorials anew with no key: save their outputs in place, and the model's answers as cassettes.

python notebooks/record.py notebooks/01_first_agent.ipynb
"""
# pyright: basic
# nbformat and nbclient carry no types.

import argparse
import sys
from pathlib import Path

import nbformat
from demo import execute

from adk_nb.models import LLMRegistry, OfflineLlm, RecordedLlm

HERE = Path(__file__).parent


def cassette_of(notebook: Path) -> Path:
    """Where the answers of `notebook` are kept."""
    return HERE / "cassettes" / f"{notebook.stem}.jsonl"


def record_offline(path: str) -> None:
    """Called in the kernel before its first cell: what the offline model answers from now on goes to `path` too."""

    class Recording(RecordedLlm):
        def __init__(self, model: str) -> None:
            super().__init__(path, record=OfflineLlm(model=model))

        @classmethod
        def supported_models(cls) -> list[str]:
            return ["offline"]

    LLMRegistry.register(Recording)


def main() -> int:
    """Exit status 1 and the cell's own error when a cell fails; nothing is saved then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", type=Path, nargs="+")
    for path in parser.parse_args().notebooks:
        cassette = cassette_of(path)
        cassette.parent.mkdir(exist_ok=True)
        earlier = cassette.read_bytes() if cassette.exists() else b""
        cassette.unlink(missing_ok=True)
        first = f"import record; record.record_offline({str(cassette.resolve())!r})"
        notebook = execute(path, before=first)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when each cell ran would differ on every run
        nbformat.write(notebook, path)
        if earlier and not cassette.exists():
            cassette.write_bytes(earlier)
            print(f"{path}: no answer was recorded, so the earlier cassette is kept", file=sys.stderr)
            return 1
        answers = len(cassette.read_text().splitlines()) if cassette.exists() else 0
        if not answers:
            cassette.unlink(missing_ok=True)
        print(f"{path}: outputs saved, {answers} answers of the offline model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
