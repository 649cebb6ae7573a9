"""A notebook's shell, for what is compared with one."""

from tests.notebook.conftest import bare as bare
from tests.notebook.conftest import shell as shell
