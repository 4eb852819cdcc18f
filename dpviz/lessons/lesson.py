"""Base of the lessons of the Learn page: settings that a link can carry, texts, and a function from the settings to figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpviz.mechanisms.base import Settings, SettingSpec, setting

EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
MOST_DRAWS = 999
SAME_SHARE = 1e-4
"""Shares that differ by less count as equal, because a link rounds shares."""


@dataclass(frozen=True)
class Figure:
    """A number with its label and a sentence that explains it."""

    label: str
    value: str
    help: str


@dataclass(frozen=True, kw_only=True, eq=False)
class LessonFigure:
    """The charts and texts of a lesson for some settings.

    Attributes:
        rows: rows of Altair charts; on a narrow screen all charts are in one column.
        asked: rows that are shown while the question is open, so that the figure does not answer it; empty for all rows.
        slide: rows that a slide has room for; empty for all rows.
        figures: at most four numbers.
        note: one or two sentences on what the charts show.
        source: source of quoted results; empty if there are none.
    """

    rows: tuple[tuple[Any, ...], ...]
    asked: tuple[tuple[Any, ...], ...] = ()
    slide: tuple[tuple[Any, ...], ...] = ()
    figures: tuple[Figure, ...] = ()
    note: str = ""
    source: str = ""

    @property
    def charts(self) -> tuple[Any, ...]:
        """All charts in order."""
        return tuple(chart for row in self.rows for chart in row)


@dataclass(frozen=True, kw_only=True)
class ShareBar:
    """The widget of a setting with several shares: a preset, a bar to drag, or a field for each share.

    Attributes:
        setting: name of the setting.
        caption: text above the bar, which names the total that is divided.
        parts: a name per share.
        presets: shares by name of the preset.
        presets_help: a sentence on the presets.
    """

    setting: str
    caption: str
    parts: Sequence[str]
    presets: Mapping[str, tuple[float, ...]]
    presets_help: str

    def preset_of(self, shares: Sequence[float]) -> str | None:
        """Return the name of the preset whose shares have the same proportions; None if there is none."""
        for name, preset in self.presets.items():
            pairs = zip(preset, shares, strict=True)
            if all(abs(a / sum(preset) - b / sum(shares)) < SAME_SHARE for a, b in pairs):
                return name
        return None


@dataclass(frozen=True, kw_only=True)
class Lesson(Settings):
    """Base of every lesson. Its fields are its settings, which are declared like settings of mechanisms and checked on creation.

    The range check, the widgets and the link all read the declaration. A setting named `draw` is the seed of the noise; it gets the
    button *Run again*.

    Class attributes:
        key: its name in links.
        title: a question or a statement.
        text: two sentences, as Markdown.
        task: one thing to try.
        question: a plain question that is asked before the figure can be moved, one that a student can get wrong.
        choices: two to four possible answers, short.
        right: index of the right one.
        answer: shown once an answer is chosen, as Markdown: two or three sentences that are true for the default settings and say when the
            answer turns.
        in_class: the teacher's notes, as Markdown: what to say, what to let them try, the wrong belief to expect.
        share_bar: the widget of a setting with several shares; None if there is no such setting.

    Example:
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Coin(Lesson):
        ...     key = "coin"
        ...     epsilon: float = epsilon_setting(0.5)
        >>> Coin(epsilon=1.0).to_query()
        {'epsilon': '1.0'}
    """

    key: ClassVar[str]
    title: ClassVar[str]
    text: ClassVar[str]
    task: ClassVar[str]
    question: ClassVar[str] = ""
    choices: ClassVar[tuple[str, ...]] = ()
    right: ClassVar[int] = 0
    answer: ClassVar[str] = ""
    in_class: ClassVar[str] = ""
    share_bar: ClassVar[ShareBar | None] = None

    def show(self) -> LessonFigure:
        """Compute the figures for these settings; the same settings always give the same figures."""
        raise NotImplementedError

    @classmethod
    def readers(cls) -> dict[str, Callable[[str], Any]]:
        """Return the reader of each parameter of a link; ranges are checked when the lesson is made."""
        return {rule.name: _reader(rule) for rule in cls.rules()}

    def build(self) -> Self:
        """Return the lesson itself, whose settings were checked on creation.

        The reader of links calls this method on every object that it makes from a link.
        """
        return self

    def to_query(self) -> dict[str, str]:
        """Return the parameters of a link; defaults are left out."""
        values = self.chosen()
        return {rule.name: _text(values[rule.name]) for rule in self.rules() if values[rule.name] != rule.default}


def _reader(rule: SettingSpec) -> Callable[[str], Any]:
    if isinstance(rule.default, bool):
        return _read_switch
    if isinstance(rule.default, tuple):
        return lambda text: tuple(float(part) for part in text.split(","))
    return type(rule.default)


def _read_switch(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(text)
    return text == "True"


def _text(value: Any) -> str:
    return ",".join(f"{part:.6g}" for part in value) if isinstance(value, tuple) else str(value)


def epsilon_setting(default: float = 1.0, help: str = "Smaller is more private and noisier.") -> Any:  # noqa: A002
    """Declare the privacy budget of a lesson."""
    return setting(default, "Privacy budget ε", choices=EPSILONS, help=help)


def draw_setting() -> Any:
    """Declare which seeded run is shown; the button *Run again* shows the next one."""
    return setting(1, "Run", low=1, high=MOST_DRAWS, help="Seeded noise on made-up data: running again is free.")
