"""Class mode: the app for a class on one server. It shows samples only, in Teach; this module alone decides what that leaves out.

Two locks hold at each place: what is left out is not shown (`is_class`), and the function behind it refuses (`refuse_in_class`). What a
session asks for, by a link or by a message that no page sends, is cut to what a class may have (`restrict`) wherever it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dpviz.errors import RefusedError

LARGEST_ORDER = 10  # of the lattice of points: 1,024 x 1,024 cells, as the Points page opens
MOST_RECORDS = 1_000_000  # of a made-up sample
LEFT_OUT = frozenset({"release"})  # pages, by the ends of their addresses
Config = TypeVar("Config")


@dataclass(frozen=True, kw_only=True)
class ClassMode:
    """What holds for a class as long as the server runs.

    Attributes:
        code: the code in the printed address; None if the class was started without one.
        memory: bytes that the server may use before new runs and new pages are refused.
    """

    code: str | None
    memory: float


_mode: ClassMode | None = None


def begin(mode: ClassMode) -> None:
    """Make this process the server of a class; nothing takes that back."""
    global _mode  # noqa: PLW0603 - the one switch of the process, which its first lines turn
    _mode = mode


def class_mode() -> ClassMode | None:
    """Return what holds for the class; None if this is the app of one person."""
    return _mode


def is_class() -> bool:
    """Return whether this is the app of a class."""
    return _mode is not None


def refuse_in_class(what: str) -> None:
    """Raise `RefusedError` in a class; `what` names what a class does not have."""
    if _mode is not None:
        raise RefusedError(f"This is the app of a class, which shows samples only. It has no {what}.")


def largest_order(otherwise: int) -> int:
    """Return the largest order of the lattice of points in a class; without a class the one given."""
    return min(LARGEST_ORDER, otherwise) if is_class() else otherwise


def most_records(otherwise: int) -> int:
    """Return the most records of a made-up sample in a class; without a class the number given."""
    return min(MOST_RECORDS, otherwise) if is_class() else otherwise


def restrict(config: Config) -> Config:
    """Return a page's configuration as a class may have it: in Teach, on a sample, within the limits of resolution and size."""
    if _mode is None:
        return config
    usual: Any = type(config)
    allowed = {name: getattr(usual, name) for name in ("mode", "source") if hasattr(config, name)}
    allowed |= {name: most for name, most in (("order", LARGEST_ORDER), ("size", MOST_RECORDS)) if (getattr(config, name, 0) or 0) > most}
    allowed |= {"study_area": usual.study_area} if getattr(config, "study_area", "") == "file" else {}
    changed = {name: value for name, value in allowed.items() if getattr(config, name) != value}
    return replace(config, **changed) if changed else config  # type: ignore[type-var]


def describe_restricted(config: object) -> str:
    """Write that a link asks for more than a class may have; "" if it does not."""
    if restrict(config) == config:
        return ""
    side = 2**LARGEST_ORDER
    return (
        f"A class has samples in Teach, with at most {side:,} x {side:,} cells and {MOST_RECORDS:,} records, and no study area from a file."
        " This link asks for more, and is shown within these limits."
    )
