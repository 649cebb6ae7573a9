"""`python -m adk_nb`, which is `adk-nb`."""

import sys

from adk_nb.command_line.main import main

sys.exit(main())
