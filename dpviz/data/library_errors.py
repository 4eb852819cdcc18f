"""Call a library so that no error text of it gets out: such texts may quote private entries and paths."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

from dpviz.errors import DpvizError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def without_private_text(rule: str, read: Callable[[], T]) -> T:
    """Call `read`, and replace any error of a library by an InputError with the text `rule`.

    Errors of libraries may quote entries and paths. The new error is raised outside the handler, so that it has neither a cause nor a
    context. Errors of dpviz are raised as they are, and warnings are ignored.
    """
    error: DpvizError = InputError(rule)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except DpvizError as dpviz_error:
        error = dpviz_error
    except Exception:  # noqa: BLE001, S110  (errors of libraries have no common class, and their texts may quote entries)
        pass
    raise error


def or_none(read: Callable[[], T]) -> T | None:
    """Call `read` and return its result, or None if it raises an error."""
    try:
        return without_private_text("", read)
    except InputError:
        return None
