"""A line that its reader had better look at."""


class Note(str):
    """It has an amber mark where a page can show one."""

    __slots__ = ()
