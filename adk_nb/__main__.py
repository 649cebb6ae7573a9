"""`python -m adk_nb`, which is `adk-nb`."""

import sys

from adk_nb.command_line.main import main

if __name__ == "__main__":
    sys.exit(main())
