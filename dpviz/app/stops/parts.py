"""What every stop of the Learn page is made of: settings that a link can carry, and what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from dpviz.app.link import Reader
from dpviz.mechanisms.base import Rule, Settings, setting

EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
MOST_DRAWS = 999


@dataclass(frozen=True, kw_only=True)
class Knobs(Settings):
    """Settings of a stop: declared once; the range check, the widget and the link read them. Base of every stop's own."""

    @classmethod
    def readers(cls) -> dict[str, Reader]:
        """How each parameter of a link is read; ranges are checked when the settings are made."""
        return {rule.name: _reader(rule) for rule in cls.rules()}

    def built(self) -> Self:
        """The settings themselves: they were checked on creation."""
        return self

    def to_query(self) -> dict[str, str]:
        """Parameters of a link; defaults are left out."""
        values = self.chosen()
        return {rule.name: _text(values[rule.name]) for rule in self.rules() if values[rule.name] != rule.default}


def _reader(rule: Rule) -> Reader:
    kind: Reader = type(rule.default)
    if isinstance(rule.default, bool):
        return lambda text: {"True": True, "False": False}[text] if text in ("True", "False") else _refuse()
    if isinstance(rule.default, tuple):
        return lambda text: tuple(float(part) for part in text.split(","))
    return kind


def _refuse() -> Any:
    raise ValueError


def _text(value: Any) -> str:
    return ",".join(f"{part:.6g}" for part in value) if isinstance(value, tuple) else str(value)


def epsilon_setting(default: float = 1.0, help: str = "Smaller is more private and noisier.") -> Any:  # noqa: A002
    """The privacy budget of a stop."""
    return setting(default, "Privacy budget ε", choices=EPSILONS, help=help)


def draw_setting() -> Any:
    """Which seeded draw is shown; the button *Draw again* goes to the next one."""
    return setting(1, "Draw", low=1, high=MOST_DRAWS, help="Seeded noise on made-up data: drawing again is free.")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number worth reading, with what it means."""

    label: str
    value: str
    help: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What a stop shows for some settings.

    Attributes:
        rows: of charts; on a narrow screen all stand one above the other.
        figures: at most four.
        note: what to see in it, in a line or two.
        source: of what is quoted, empty if nothing is.
    """

    rows: tuple[tuple[Any, ...], ...]
    figures: tuple[Figure, ...] = ()
    note: str = ""
    source: str = ""

    @property
    def charts(self) -> tuple[Any, ...]:
        """All charts in order."""
        return tuple(chart for row in self.rows for chart in row)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One stop of the walk.

    Attributes:
        key: in its address.
        title: a question or a statement.
        says: two sentences.
        task: one thing to try.
        knobs: its settings.
        show: makes what it shows; a pure function of the settings.
        controls: more widgets than those that the settings declare; gets the settings and a function that changes them.
    """

    key: str
    title: str
    says: str
    task: str
    knobs: type[Any]
    show: Callable[[Any], Shown]
    controls: Callable[[Any, Callable[..., None]], None] | None = None
