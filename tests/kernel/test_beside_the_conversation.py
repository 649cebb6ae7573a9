"""%key, %doctor, %record and %export in a real kernel: nothing that it sends holds a key, and files are written."""

from pathlib import Path

import pytest
from kernel import Kernel

pytestmark = pytest.mark.kernel

KEY = "Qx7-not-a-real-key-0042"


def test_a_key_that_is_typed_is_in_nothing_that_the_kernel_sends(kernel: Kernel, tmp_path: Path):
    kernel.run("%load_ext adk_nb")
    kernel.lines = [KEY]
    asked = kernel.run("%key gemini --from ask")
    cells = [
        asked,
        kernel.run("import os; assert os.environ['GOOGLE_API_KEY'].startswith('Qx7')"),
        kernel.run("%doctor"),
        kernel.run("raise ValueError('told ' + os.environ['GOOGLE_API_KEY'])", raises=True),
        kernel.run(f"%cd -q {tmp_path}"),
        kernel.run("%%tool\ndef sky(city: str) -> str:\n    'The sky over a city.'\n    return 'sunny'"),
        kernel.run("%%agent guide -m offline -t sky\nLook."),
        kernel.run(f"%record --file {tmp_path / 'tape.jsonl'}"),
        kernel.run("%chat guide The sky over Oslo"),
        kernel.run("await __import__('adk_nb').Chat(guide).aask('The sky over Rome')"),
        kernel.run("%record off"),
        kernel.run(f"%export {tmp_path / 'agent.py'}"),
    ]

    assert kernel.prompts == ["GOOGLE_API_KEY (hidden): "]
    assert asked.text.splitlines()[0] == "GOOGLE_API_KEY is set, from your input"
    assert "GOOGLE_API_KEY is set" in cells[2].text
    assert "adk-nb-loop" in cells[2].text
    assert "told [secret]" in cells[3].traceback
    assert KEY not in str([cell.outputs for cell in cells])
    assert len((tmp_path / "tape.jsonl").read_text().splitlines()) == 4
    assert "def sky" in (tmp_path / "agent.py").read_text()
