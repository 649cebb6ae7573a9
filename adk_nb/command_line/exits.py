"""The exit codes of `adk-nb`, by which a script or CI decides."""

DONE = 0
FAILED = 1
"""The turn ended with an error, or a score is below its minimum."""
USAGE = 2
"""Something is to be corrected in the command line, the notebook or the configuration; nothing was asked."""
WAITING = 3
"""The turn waits for an approval or another answer."""
STOPPED = 130
"""By Ctrl-C, as shells have it."""
UNREAD = 141
"""Who reads the output has gone before its end, as shells have it."""
