"""What a mechanism is: settings declared once, all that the other rooms ask of it, and the registry of its family."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpviz.errors import SettingError
from dpviz.privacy.audit import Neighbours
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy

Data = TypeVar("Data")
Frame = TypeVar("Frame")
Output = TypeVar("Output")

_RAISES = "        SettingError: a setting of the wrong type or out of its range."
BOUNDED, ADD_REMOVE = "bounded", "add_remove"
NEIGHBOURS = (BOUNDED, ADD_REMOVE)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One setting as the range check, the app's widget and the documentation see it.

    Attributes:
        name: the argument's name.
        default: its default.
        label: a short title.
        help: one sentence.
        low: smallest value, None without one.
        high: largest value, None without one.
        choices: allowed texts or numbers, empty if any in the range.
        optional: None is allowed and means "chosen by the mechanism".
        when: names another setting and the value, or the tuple of values, with which this one matters.
    """

    name: str
    default: Any
    label: str
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    optional: bool = False
    when: tuple[str, Any] | None = None

    def matters(self, values: Mapping[str, Any]) -> bool:
        """Whether this setting makes a difference beside the other settings' values."""
        if self.when is None:
            return True
        name, wanted = self.when
        return values[name] in (wanted if isinstance(wanted, tuple) else (wanted,))


@dataclass(frozen=True, kw_only=True)
class Share:
    """One part of the budget as a person sees and moves it.

    Attributes:
        label: what it buys.
        share: of the budget, 0 to 1.
        structure: it decides where partitions lie, rather than counting them.
    """

    label: str
    share: float
    structure: bool = False


def setting(
    default: Any,
    label: str,
    *,
    help: str,  # noqa: A002
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    optional: bool = False,
    when: tuple[str, Any] | None = None,
) -> Any:
    """Declare a setting once: its default, title, sentence and range; see `Rule` for what each argument means."""
    rule = {"label": label, "help": help, "low": low, "high": high, "choices": choices, "optional": optional, "when": when}
    return field(default=default, metadata={"rule": rule})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Frozen settings, each declared once with `setting` and checked on creation.

    What a class declares is added to its docstring as `Args`, with ranges and defaults.

    Raises:
        SettingError: a setting of the wrong type or out of its range.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Grid(Settings):
    ...     side: int = setting(8, "Cells per side", low=1, high=64, help="How many cells a row has.")
    >>> Grid(side=4).chosen()
    {'side': 4}
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherited: dict[str, Field[Any]] = getattr(cls, "__dataclass_fields__", {})
        declared = {**inherited, **{name: value for name, value in vars(cls).items() if isinstance(value, Field)}}
        lines = [_described(name, each) for name, each in declared.items() if "rule" in each.metadata]
        if cls.__doc__ and lines:
            cls.__doc__ = "\n".join([cls.__doc__.rstrip(), "", "    Args:", *lines, "", f"    Raises:\n{_RAISES}"])

    def __post_init__(self) -> None:
        declared = {each.name: each for each in fields(self)}
        for rule in self.rules():
            object.__setattr__(self, rule.name, _checked(rule, declared[rule.name], getattr(self, rule.name)))

    @classmethod
    def rules(cls) -> Iterator[Rule]:
        """The settings, in order of declaration."""
        return (Rule(name=f.name, default=f.default, **f.metadata["rule"]) for f in fields(cls) if f.default is not MISSING)

    @classmethod
    def from_settings(cls, values: Mapping[str, Any]) -> Self:
        """Build one from values by the names of settings; the others keep their defaults.

        Raises:
            SettingError: an unknown name, or a value of the wrong type or out of its range.
        """
        known = {rule.name for rule in cls.rules()}
        if unknown := sorted(set(values) - known):
            raise SettingError(f"There is no setting {unknown[0][:40]!r}; there are {', '.join(sorted(known)) or 'none'}.")
        return cls(**values)

    def chosen(self) -> dict[str, Any]:
        """Every setting and its value."""
        return {declared.name: getattr(self, declared.name) for declared in fields(self)}

    def non_defaults(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        return {rule.name: getattr(self, rule.name) for rule in self.rules() if getattr(self, rule.name) != rule.default}


@dataclass(frozen=True, kw_only=True)
class LevelError:
    """The noise on the counts of one level of a release.

    Attributes:
        level: 0 for the whole.
        of: what is counted there, in words.
        numbers: how many counts there are; None where that depends on the data.
        stddev: root mean square standard deviation of a count, in units; NaN where none can be stated.
        interval: half the width of the 95 % interval, in units.
    """

    level: int
    of: str
    numbers: int | None
    stddev: float
    interval: float


@dataclass(frozen=True, kw_only=True)
class Mechanism(Settings, ABC, Generic[Data, Frame, Output]):
    """Base of every mechanism: its settings, and all that pages, studies, audits, dry runs and the command line ask of it.

    `Data` is what it takes and keeps private, `Frame` the public frame of these data, `Output` what it releases. Each family has a base
    of its own with these three fixed (`PointMechanism`, `FlowMechanism`); a mechanism is a frozen dataclass on top of that, which
    declares its settings and implements `release`. The rest has defaults.

    Class attributes:
        family: the name of its family, such as "points"; set by the family's base.
        key: its name in tables, links, configurations and files.
        title: its name on screen.
        summary: one sentence on what it does.
        private: False for references that must never be published.
        extra_tab: the title of a tab of its own under the map, which the page draws; "" without one.
    """

    family: ClassVar[str]
    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    private: ClassVar[bool] = True
    extra_tab: ClassVar[str] = ""

    @abstractmethod
    def release(self, data: Data, budget: Budget, entropy: Entropy) -> Output:
        """Spend a budget on private data: the only step from private to public.

        Args:
            data: the private counts.
            budget: of the kind that the mechanism takes.
            entropy: where noise comes from.

        Raises:
            BudgetError: another kind of budget, or settings that it does not fit.
            DpvizError: settings that do not fit the data's frame, or other arguments than these.
        """

    @property
    def needs_delta(self) -> bool:
        """Whether the budget must have a delta."""
        return False

    @property
    def neighbours(self) -> str:
        """Which inputs must look alike: "add_remove" (one unit more), or "bounded" (one unit replaced)."""
        return ADD_REMOVE

    @property
    def conversion(self) -> str:
        """How (epsilon, delta) becomes rho where an account counts in rho: "tight" or "simple"."""
        return "tight"

    def check(self, frame: Frame) -> None:
        """Raise what is wrong with these settings on a frame, as far as public facts show, before anything is spent."""
        self.shares(frame)

    @abstractmethod
    def check_data(self, data: Data) -> None:
        """Raise what public facts about the data rule out (their frame, unit and bound per unit), before anything is spent."""

    def shares(self, frame: Frame) -> list[Share]:  # noqa: ARG002
        """How the budget is split on a frame; one part unless a mechanism says otherwise."""
        return [Share(label="counts", share=1.0)]

    def with_shares(self, shares: Sequence[float]) -> Self:  # noqa: ARG002
        """The same mechanism with another split, in the order of `shares`; itself if there is nothing to split."""
        return self

    @abstractmethod
    def depends_on_data(self, release: Output) -> bool:
        """Whether other data would have given other partitions, or other numbers to release, as far as a release shows."""

    @abstractmethod
    def level_errors(self, release: Output) -> list[LevelError]:
        """The noise on each level of a release, coarsest first: the expected error where nothing else is known."""

    @abstractmethod
    def audit_pairs(self, budget: Budget) -> list[Neighbours]:
        """Pairs of made-up neighbouring inputs on which a fault of this mechanism would show, each with the mechanism run on it."""


AnyMechanism = Mechanism[Any, Any, Any]
"""A mechanism of whichever family."""
Kind_co = TypeVar("Kind_co", bound=AnyMechanism, covariant=True)


class Registry(Mapping[str, type[Kind_co]]):
    """The mechanisms of a family by key: those of this package, then those that installed packages join by an entry point.

    Entry points are loaded at the first look, so that a package that joins may import dpviz, and dpviz may be imported by it.

    Args:
        base: what all of them are based on.
        own: those of this package.
        group: name of the entry points.

    Raises:
        SettingError: at the first look: an entry point that is no mechanism of the family, or has the key of another one.
    """

    def __init__(self, base: type[Kind_co], own: Sequence[type[Kind_co]], group: str) -> None:
        self.group = group
        self._base, self._own = base, own

    def __getitem__(self, key: str) -> type[Kind_co]:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __repr__(self) -> str:
        return f"Registry({', '.join(self)})"

    def reload(self) -> None:
        """Look for entry points again at the next look, as after a package was installed."""
        self.__dict__.pop("_all", None)

    @cached_property
    def _all(self) -> dict[str, type[Kind_co]]:
        found = {mechanism.key: mechanism for mechanism in self._own}
        for entry in entry_points(group=self.group):
            mechanism = entry.load()
            if not (isinstance(mechanism, type) and issubclass(mechanism, self._base)):
                raise SettingError(f"The entry point {entry.name!r} of {self.group} is no mechanism based on {self._base.__name__}.")
            if mechanism.key in found:
                raise SettingError(f"The entry point {entry.name!r} of {self.group} has the key {mechanism.key!r}, which is taken.")
            found[mechanism.key] = mechanism
        return found


@dataclass(frozen=True, kw_only=True)
class Family(Generic[Kind_co]):
    """Mechanisms that take the same kind of private data. Pages, studies, configurations and the command line look here.

    Attributes:
        name: what the data are called, such as "points".
        data: the type of the private data.
        frame: the type of their public frame.
        base: what every mechanism of the family is based on.
        own: the private mechanisms of this package.
        group: name of the entry points by which packages join others.
        references: mechanisms that are NOT PRIVATE, for teaching.
        usual: keys of those that are compared unless others are chosen; the first is a page's default.
    """

    name: str
    data: type[Any]
    frame: type[Any]
    base: type[Kind_co]
    own: tuple[type[Kind_co], ...]
    group: str
    references: tuple[type[Kind_co], ...] = ()
    usual: tuple[str, ...]

    @cached_property
    def mechanisms(self) -> Registry[Kind_co]:
        """The private ones by key, joined ones included."""
        return Registry(self.base, self.own, self.group)

    @property
    def choices(self) -> dict[str, type[Kind_co]]:
        """All of them by key: private ones, then references."""
        return {**self.mechanisms, **{reference.key: reference for reference in self.references}}


AnyFamily = Family[AnyMechanism]


def shares_of(shares: Sequence[float]) -> list[float]:
    """The same split as parts of 1.

    Raises:
        SettingError: a share below 0 or not finite, or none above 0.
    """
    total = sum(shares)
    if not (0 < total < math.inf and min(shares) >= 0):
        raise SettingError("The shares of a split must be finite numbers of at least 0, one of them above 0.")
    return [share / total for share in shares]


def _checked(rule: Rule, declared: Field[Any], value: Any) -> Any:
    if value is None and rule.optional:
        return None
    kind = (declared.type.__name__ if isinstance(declared.type, type) else str(declared.type)).split(" ")[0]
    try:
        value = _CONVERT[kind](value, rule.label)
    except OverflowError:
        raise SettingError(f"{rule.label} is too large a number.") from None
    if rule.choices and value not in rule.choices:
        raise SettingError(f"{rule.label} must be one of {', '.join(map(str, rule.choices))}.")
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        too_low, too_high = rule.low is not None and number < rule.low, rule.high is not None and number > rule.high
        if too_low or too_high:
            raise SettingError(f"{rule.label} must be {_range(rule)}.")
    return value


def _described(name: str, declared: Field[Any]) -> str:
    """A setting as a line of a docstring's Args."""
    rule = Rule(name=name, default=declared.default, **declared.metadata["rule"])
    if rule.choices:
        allowed = f" One of {', '.join(map(repr, rule.choices))}."
    else:
        allowed = "" if rule.low is None and rule.high is None else f" {_range(rule).capitalize()}."
    return f"        {name}: {rule.label}. {rule.help}{allowed} Default {rule.default!r}."


def _range(rule: Rule) -> str:
    low, high = (None if bound is None else f"{bound:,.12g}" for bound in (rule.low, rule.high))
    if low is not None and high is not None:
        return f"from {low} to {high}"
    return f"at least {low}" if high is None else f"at most {high}"


def _whole(value: Any, label: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer) or not float(value).is_integer():
        raise SettingError(f"{label} must be a whole number.")
    return int(value)


def _real(value: Any, label: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise SettingError(f"{label} must be a finite number.")
    return float(value)


def _text(value: Any, label: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{label} must be a text.")
    return value


def _switch(value: Any, label: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{label} must be on or off (True or False).")
    return bool(value)


def _several(value: Any, label: str) -> tuple[float, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise SettingError(f"{label} must be a list of numbers.")
    return tuple(_real(part, label) for part in value)


_CONVERT: dict[str, Callable[[Any, str], Any]] = {
    "int": _whole,
    "float": _real,
    "str": _text,
    "bool": _switch,
    "tuple[float,": _several,
}
