"""The harness itself: what the other browser tests lean on."""

import pytest
from lab import Lab

pytestmark = pytest.mark.browser


@pytest.mark.browser_all
def test_cells_run_in_a_real_lab_and_their_output_is_seen_and_saved(lab: Lab):
    page = lab.open(lab.write("demo.ipynb", "print('hello')", "6 * 7"))

    page.run_all()

    assert page.text(0) == "hello"
    assert page.text(1) == "42"
    assert page.saved().cells[1].outputs[0].data["text/plain"] == "42"


@pytest.mark.browser_all
def test_a_cell_that_raises_fails_the_run_with_its_traceback(lab: Lab):
    page = lab.open(lab.write("demo.ipynb", "1 / 0"))

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        page.run_cell(0)


def test_the_alert_trap_hears_a_script(lab: Lab):
    page = lab.open(lab.write("demo.ipynb", "from IPython.display import Javascript; Javascript('alert(1)')"))

    page.run_cell(0)

    page.until(lambda: page.alerts() == ["1"], "the alert")


def test_no_key_and_no_home_of_this_machine_reach_the_kernel(lab: Lab, tmp_path_factory: pytest.TempPathFactory):
    page = lab.open(lab.write("demo.ipynb", "import os; print(os.environ['HOME']); print(*sorted(os.environ))"))

    page.run_cell(0)

    home, names = page.text(0).splitlines()
    assert home.startswith(str(tmp_path_factory.getbasetemp()))
    assert not [name for name in names.split() if "KEY" in name or "TOKEN" in name]
