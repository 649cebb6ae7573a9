"""The fixture of the kernel tests; what it gives is told in kernel.py."""

from collections.abc import Iterator

import pytest
from kernel import Kernel, running_kernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One for all tests of a file: each begins by defining its agents anew."""
    with running_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel
