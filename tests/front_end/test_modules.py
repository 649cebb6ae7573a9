"""What the view's modules do without a page, as Node.js runs their own tests."""

from pathlib import Path

import view_build


def test_the_modules_of_the_view_pass_their_own_tests():
    tests = sorted(str(path) for path in Path(__file__).parent.glob("*.test.js"))

    done = view_build.run("node", "--test", "--test-reporter=tap", *tests)

    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert tests and "# fail 0" in done.stdout and "# pass 0" not in done.stdout
