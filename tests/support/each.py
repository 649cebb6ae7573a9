"""Many cases of a quick test that needs no fixture, as one item: an item costs more than such a case."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_FAULTS = (Exception, BaseExceptionGroup, pytest.fail.Exception)


def each(
    names: str, cases: Iterable[Any] | Callable[[], Iterable[Any]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with every case, as `pytest.mark.parametrize` would, and tell every one that fails.

    Args:
        names: The arguments that a case gives, with commas between them.
        cases: A value each; a tuple of them where there are several names. A function, where making them takes time.
    """
    keys = [name.strip() for name in names.split(",")]

    def over_cases(test: Callable[..., None]) -> Callable[..., None]:
        def all_cases(**others: Any) -> None:
            faults: list[BaseException] = []
            values = list(cases() if callable(cases) else cases)
            for case in values:
                given = dict(zip(keys, case if len(keys) > 1 else (case,), strict=True))
                try:
                    test(**others, **given)
                except _FAULTS as fault:
                    fault.add_note("in the case " + ", ".join(f"{key}={one!r:.500}" for key, one in given.items()))
                    faults.append(fault)
            if len(faults) > 1:
                raise BaseExceptionGroup(f"{len(faults)} of {len(values)} cases", faults)
            if faults:
                raise faults[0]

        functools.update_wrapper(all_cases, test)
        del all_cases.__wrapped__  # pytest would look through it
        signature = inspect.signature(test)
        left = [it for name, it in signature.parameters.items() if name not in keys]
        all_cases.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return all_cases

    return over_cases
