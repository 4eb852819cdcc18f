"""What a mechanism is: settings declared once, and one method from private counts to a public release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from dpviz.data.flows import Flows
from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.privacy.budget import Budget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain
from dpviz.space.regions import Regions

Frame = TypeVar("Frame", Domain, Regions)


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
class Settings(Generic[Frame]):
    """Base of every mechanism: frozen settings, checked on creation.

    `Frame` is the public frame that it works on: a Domain, or the Regions of trips.

    Class attributes:
        key: its name in tables, addresses and files.
        title: its name on screen.
        summary: one sentence on what it does.
        private: False for references that must never be published.

    Raises:
        SettingError: a setting of the wrong type or out of its range.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    private: ClassVar[bool] = True

    def __post_init__(self) -> None:
        declared = {each.name: each for each in fields(self)}
        for rule in self.rules():
            object.__setattr__(self, rule.name, _checked(rule, declared[rule.name], getattr(self, rule.name)))

    @classmethod
    def rules(cls) -> Iterator[Rule]:
        """The settings, in order of declaration."""
        return (Rule(name=f.name, default=f.default, **f.metadata["rule"]) for f in fields(cls) if f.default is not MISSING)

    @property
    def needs_delta(self) -> bool:
        """Whether the budget must have a delta."""
        return False

    def check(self, frame: Frame) -> None:
        """Raise what is wrong with these settings on a frame, as far as public facts tell, before anything is spent."""
        self.shares(frame)

    def shares(self, frame: Frame) -> list[Share]:  # noqa: ARG002
        """How the budget is split on a frame; one part unless a mechanism says otherwise."""
        return [Share(label="counts", share=1.0)]

    def with_shares(self, shares: Sequence[float]) -> Self:  # noqa: ARG002
        """The same mechanism with another split, in the order of `shares`; itself if there is nothing to split."""
        return self

    def chosen(self) -> dict[str, Any]:
        """Every setting and its value."""
        return {declared.name: getattr(self, declared.name) for declared in fields(self)}


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
    kind = str(declared.type).split(" ")[0]
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


@runtime_checkable
class PointMechanism(Protocol):
    """Anything that turns private lattice counts into a public release."""

    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]

    def release(self, points: PointCounts, budget: PureBudget, entropy: Entropy) -> Release:
        """Spend `budget` on `points` with noise from `entropy`."""


@runtime_checkable
class FlowMechanism(Protocol):
    """Anything that turns private trips into a public release."""

    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]

    def release(self, flows: Flows, budget: Budget, entropy: Entropy) -> FlowRelease:
        """Spend `budget` on `flows` with noise from `entropy`."""
