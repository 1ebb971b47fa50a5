"""Cases of one test in one test: to exist costs a test 5 ms in `make test`, more than most cases take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def of_each(names: str | tuple[str, ...], cases: Iterable[Any], **_: Any) -> Callable[[Callable[..., None]], Any]:
    """As `pytest.mark.parametrize` is used, for cases that need no fixture of their own: all are tried in one test.

    Args:
        names: of the arguments.
        cases: a value, or a tuple of values, of each case.

    Raises:
        ExceptionGroup: what went wrong, each with the case in which it did.
    """
    named = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
    plain = [case.values if isinstance(case, type(pytest.param())) else case for case in cases]
    rows = [tuple(case) if len(named) > 1 else (case,) for case in plain]

    def together(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_of_them(*given: Any, **fixtures: Any) -> None:
            wrong: list[Exception] = []
            for row in rows:
                case = dict(zip(named, row, strict=True))
                try:
                    test(*given, **fixtures, **case)
                except (Exception, pytest.fail.Exception) as error:
                    kept = error if isinstance(error, Exception) else AssertionError(str(error))
                    kept.add_note(f"the case: {case!r:.300}")
                    wrong.append(kept)
            if wrong:
                raise ExceptionGroup(f"{len(wrong)} of {len(rows)} cases", wrong)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in named]
        all_of_them.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return all_of_them

    assert rows, "a test of no case cannot fail"
    return together
