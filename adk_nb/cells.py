"""Where in a notebook's cells an error comes from."""

import traceback
from types import FrameType
from typing import Any


def in_a_cell(error: BaseException | None) -> str | None:
    """`In[7] line 4`: the innermost line of a cell that led to `error`, or else to its cause. None: no cell did.

    The line of a magic is line 1 of its cell. A cell that was run twice has the later number.
    """
    seen = set[int]()
    while error and id(error) not in seen:
        seen.add(id(error))
        places = [(cell, line) for frame, line in traceback.walk_tb(error.__traceback__) if (cell := cell_of(frame))]
        if places:
            cell, line = places[-1]
            return f"{cell} line {line}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def cell_of(frame: FrameType) -> str | None:
    """The cell that a frame runs, as IPython calls it: `In[7]`. None: none.

    The shell whose namespace the code runs in knows what it has compiled.
    """
    shell: Any = getattr(frame.f_globals.get("get_ipython"), "__self__", None)
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = named(frame.f_code.co_filename) if named else None
    return found[1] if found else None
