"""The interface of what keeps eval sets, by app and id. Source: google-adk 2.13."""

import re
from abc import ABC, abstractmethod

from adk_nb import clock
from adk_nb.errors import InputError, NotFoundError
from adk_nb.evaluation.eval_case import EvalCase
from adk_nb.evaluation.eval_set import EvalSet

_ID = re.compile(r"[a-zA-Z0-9_]+")


class EvalSetsManager(ABC):
    """Keeps eval sets. A subclass reads, writes and lists them; the cases in them are the same everywhere."""

    @abstractmethod
    def get_eval_set(self, app_name: str, eval_set_id: str) -> EvalSet | None:
        """The eval set; None if there is none."""

    @abstractmethod
    def list_eval_sets(self, app_name: str) -> list[str]:
        """The ids of an app's eval sets, sorted.

        Raises:
            NotFoundError: There is no such app.
        """

    @abstractmethod
    def _save(self, app_name: str, eval_set: EvalSet) -> None:
        """Store an eval set under its id, in place of an earlier one."""

    def create_eval_set(self, app_name: str, eval_set_id: str) -> EvalSet:
        """Store an empty eval set, and return it.

        Raises:
            InputError: There is one of that id, or the id has other characters than letters, digits and `_`.
        """
        if not _ID.fullmatch(eval_set_id):
            raise InputError(f"Invalid Eval Set ID {eval_set_id!r:.80}; use letters, digits and _")
        if self.get_eval_set(app_name, eval_set_id) is not None:
            raise InputError(f"eval set {eval_set_id!r} of app {app_name!r} already exists")
        new = EvalSet(eval_set_id=eval_set_id, name=eval_set_id, eval_cases=[], creation_timestamp=clock.now())
        self._save(app_name, new)
        return new

    def get_eval_case(self, app_name: str, eval_set_id: str, eval_case_id: str) -> EvalCase | None:
        """A case; None if there is no such case or eval set."""
        found = self.get_eval_set(app_name, eval_set_id)
        return next((case for case in found.eval_cases if case.eval_id == eval_case_id), None) if found else None

    def add_eval_case(self, app_name: str, eval_set_id: str, eval_case: EvalCase) -> None:
        """Add a case at the end.

        Raises:
            NotFoundError: There is no such eval set.
            InputError: It has a case of that id.
        """
        found = self._eval_set(app_name, eval_set_id)
        if any(case.eval_id == eval_case.eval_id for case in found.eval_cases):
            raise InputError(f"eval case {eval_case.eval_id!r} already exists in eval set {eval_set_id!r}")
        found.eval_cases.append(eval_case)
        self._save(app_name, found)

    def update_eval_case(self, app_name: str, eval_set_id: str, updated_eval_case: EvalCase) -> None:
        """Put a case in the place of the one of its id.

        Raises:
            NotFoundError: There is no such eval set or case.
        """
        found = self._eval_set(app_name, eval_set_id)
        found.eval_cases[_index(found, updated_eval_case.eval_id)] = updated_eval_case
        self._save(app_name, found)

    def delete_eval_case(self, app_name: str, eval_set_id: str, eval_case_id: str) -> None:
        """Delete a case.

        Raises:
            NotFoundError: There is no such eval set or case.
        """
        found = self._eval_set(app_name, eval_set_id)
        del found.eval_cases[_index(found, eval_case_id)]
        self._save(app_name, found)

    def _eval_set(self, app_name: str, eval_set_id: str) -> EvalSet:
        found = self.get_eval_set(app_name, eval_set_id)
        if found is None:
            raise NotFoundError("eval set", eval_set_id)
        return found


def _index(eval_set: EvalSet, eval_case_id: str) -> int:
    ids = [case.eval_id for case in eval_set.eval_cases]
    if eval_case_id not in ids:
        raise NotFoundError(f"case of eval set {eval_set.eval_set_id!r}", eval_case_id, ids)
    return ids.index(eval_case_id)


def check_segment(name: str, what: str) -> str:
    """A name that becomes a part of a path.

    Raises:
        InputError: It would lead elsewhere.
    """
    if not name or name in (".", "..") or re.search(r"[/\\:\x00-\x1f]", name):
        raise InputError(f"{what} {name!r:.80} cannot be a part of a path; leave out slashes and colons")
    return name
