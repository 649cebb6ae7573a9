"""What the modules of the view and of the editors do without a page, as Node.js runs their own tests."""

from pathlib import Path

import pytest
import view_build


@pytest.mark.slow
def test_the_modules_pass_their_own_tests(tmp_path: Path):
    done = view_build.run_tests(tmp_path)

    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout
