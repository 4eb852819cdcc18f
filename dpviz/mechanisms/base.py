"""The base of every mechanism: settings that are declared once, the methods that other rooms call, and the registry of a family."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.errors import InputError, SettingError, check_choice
from dpviz.mechanisms.audit import Added, pair_of, read_release
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.budget import Budget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Receipt
from dpviz.release.intervals import Noise, half_widths
from dpviz.release.older import hint_at_name

Data = TypeVar("Data")
Frame = TypeVar("Frame")
Output = TypeVar("Output")

BOUNDED, ADD_REMOVE = "bounded", "add_remove"
NEIGHBOURS = (BOUNDED, ADD_REMOVE)
PUBLIC_REGIONS = ("the regions and their levels", "the mechanism and its settings")
"""What a release of counts of regions, or of pairs of them, takes as public."""
RECOMMENDED, TREES, GRIDS, DATA_DEPENDENT, NOT_PRIVATE = "Recommended", "Trees", "Grids", "Data-dependent", "References"
TODAY, LOCAL = "What people do today", "Local model"
LAPLACE, GAUSSIAN = "Laplace", "Gaussian"
NOISES = (LAPLACE, GAUSSIAN)
"""The noises between which the kind of the budget decides, see `Mechanism.noise_by_budget`."""


@dataclass(frozen=True, kw_only=True)
class SettingSpec:
    """The declaration of one setting, from which range check, widget and documentation are made.

    Attributes:
        name: the argument's name.
        default: its default.
        label: a short title.
        help: one sentence.
        low: smallest value, None without a limit.
        high: largest value, None without a limit.
        choices: allowed texts or numbers, empty if every value in the range is allowed.
        optional: whether None is allowed, which means "chosen by the mechanism".
        when: another setting's name and the value (or tuple of values) of that setting with which this one matters; None if it always
            matters.
        good: for the error of a bad value, what to give instead, in words; "" for the range.
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
    good: str = ""

    def matters(self, values: Mapping[str, Any]) -> bool:
        """Return whether this setting has an effect, given the values of all settings by name."""
        if self.when is None:
            return True
        name, wanted = self.when
        return values[name] in (wanted if isinstance(wanted, tuple) else (wanted,))


@dataclass(frozen=True, kw_only=True)
class Share:
    """One part of the budget, as a user sees and changes it.

    Attributes:
        label: what the part is spent on.
        share: share of the budget, 0 to 1.
        structure: whether the part pays for the choice of partitions; else it pays for counts.
        level: zoom level whose counts the part pays for; None if it belongs to no level, or to a depth between two zoom levels.
    """

    label: str
    share: float
    structure: bool = False
    level: int | None = None


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
    good: str = "",
) -> Any:
    """Declare a setting of a mechanism. Range check, widget and documentation are made from this declaration.

    The type of the setting is that of its annotation: int, float, str, bool or tuple[float, ...].

    Args:
        default: the default.
        label: a short title.
        help: one sentence.
        low: smallest value; None without a limit. It holds for each number of a tuple.
        high: largest value, likewise.
        choices: allowed texts or numbers; empty if every value in the range is allowed.
        optional: whether None is allowed, which means "chosen by the mechanism".
        when: another setting's name and the value (or tuple of values) of that setting with which this one matters; None if it always
            matters.
        good: for the error of a bad value, what to give instead, in words; "" for the range.

    Returns:
        The field of a dataclass.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Grid(Settings):
    ...     side: int = setting(8, "Cells per side", low=1, high=64, help="How many cells a row has.")
    >>> Grid().side
    8
    >>> Grid(side=100)
    Traceback (most recent call last):
    ...
    dpviz.errors.SettingError: Cells per side must be from 1 to 64.
    """
    rule = {"label": label, "help": help, "low": low, "high": high, "choices": choices, "optional": optional, "when": when, "good": good}
    return field(default=default, metadata={"rule": rule})


def weights_setting(text: str = "One per zoom level, whole domain first: shares or whole numbers.") -> Any:
    """Declare the setting `weights` of a split of the budget; `text` is its help."""
    return setting((), "Custom weights", low=0, when=("split", "custom"), help=text)


def least_count_setting(label: str, text: str) -> Any:
    """Declare a threshold under which noisy counts are left out, empty by default; `text` is its help."""
    return setting(None, label, optional=True, low=1, high=2**53, help=text)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Frozen settings, each declared once with `setting` and checked on creation.

    The settings of a class are added to its docstring as `Args`, with ranges and defaults.

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
        declared = {name: item for name, item in {**inherited, **vars(cls)}.items() if isinstance(item, Field)}
        lines = [_format_setting(name, declared_field) for name, declared_field in declared.items() if "rule" in declared_field.metadata]
        if cls.__doc__ and lines:
            raises = "    Raises:\n        SettingError: a setting of the wrong type or out of its range."
            cls.__doc__ = "\n".join([cls.__doc__.rstrip(), "", "    Args:", *lines, "", raises])

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse settings that there are not, as `from_settings` does."""
        if unknown := sorted(given.keys() - {item.name for item in fields(cls)}):
            name, known = unknown[0], sorted(rule.name for rule in cls.rules())
            raise SettingError(f"There is no setting {name[:40]!r}; there are {', '.join(known) or 'none'}.{hint_at_name(name, known)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        declared = {item.name: item for item in fields(self)}
        for rule in self.rules():
            try:
                object.__setattr__(self, rule.name, _convert_value(rule, declared[rule.name], getattr(self, rule.name)))
            except SettingError:
                if not rule.good:
                    raise
                raise SettingError(f"{rule.label}: give {rule.good}.") from None

    @classmethod
    def rules(cls) -> Iterator[SettingSpec]:
        """Iterate over the rules of the settings, in order of declaration."""
        return (SettingSpec(name=f.name, default=f.default, **f.metadata["rule"]) for f in fields(cls) if f.default is not MISSING)

    @classmethod
    def from_settings(cls, values: Mapping[str, Any]) -> Self:
        """Build an instance from values by the names of settings; settings that are not named keep their defaults.

        Raises:
            SettingError: an unknown name, or a value of the wrong type or out of its range.
        """
        return cls(**values)

    def chosen(self) -> dict[str, Any]:
        """Return every setting's value by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def non_defaults(self) -> dict[str, Any]:
        """Return the values of the settings that differ from their defaults, by name."""
        return {rule.name: getattr(self, rule.name) for rule in self.rules() if getattr(self, rule.name) != rule.default}


AnyLevel = int | tuple[int, int]
"""The number of a level, or a pair: of a level of regions, and one of categories, from 1 on."""


@dataclass(frozen=True, kw_only=True)
class LevelError:
    """The noise on the counts of one level of a release.

    Attributes:
        level: 0 for the whole.
        slot_level: of counts by category also the level of categories, 0 for all of them together.
        of: name of what is counted on the level, such as "the whole domain" or "state to state".
        numbers: number of counts on the level; None where that depends on the data.
        stddev: root mean square standard deviation of a count, in records or trips; NaN where none can be stated.
        interval: half the width of the 95 % interval, in records or trips.
    """

    level: int
    slot_level: int = 0
    of: str
    numbers: int | None
    stddev: float
    interval: float

    @classmethod
    def of_noise(cls, level: AnyLevel, of: str, stddevs: Floats, noise: Noise) -> LevelError:
        """Sum up (n,) standard deviations of the counts of a level, or of a pair of levels, with noise of a kind."""
        stddev, (place, slot) = np.sqrt(np.mean(stddevs**2)), level if isinstance(level, tuple) else (level, 0)
        interval = float(half_widths(noise, stddev))
        return cls(level=place, slot_level=slot, of=of, numbers=len(stddevs), stddev=float(stddev), interval=interval)

    @property
    def key(self) -> AnyLevel:
        """The level, or with a level of categories the pair of both."""
        return (self.level, self.slot_level) if self.slot_level else self.level


@dataclass(frozen=True, kw_only=True)
class Mechanism(Settings, ABC, Generic[Data, Frame, Output]):
    """Base of every mechanism: its settings, and the methods that pages, studies, audits, dry runs and the command line call.

    `Data` is the type of the private input, `Frame` the type of its public frame, `Output` the type of the release. Each family has a
    base class that fixes these three types (`PointMechanism`, `TripMechanism`). A mechanism is a frozen dataclass that inherits from its
    family's base, declares its settings and implements `release`. All other methods have defaults in the family's base.

    Class attributes:
        family: the name of its family, such as "points"; set by the family's base.
        takes: the type of its private data, and where they come from, for the error of other data; set by the family's base.
        key: its name in tables, links, configurations and files.
        title: its name on screen.
        summary: one sentence on what it does.
        advice: a sentence or two on when to take it and when not, by measured numbers; pages list it for every mechanism. "" without any.
        menu_group: the part of a menu in which it stands, such as `TREES`; "" in a menu that has no parts.
        private: False for references that must never be published.
        attack: why a reference is not private, as an end of the sentence "NOT PRIVATE: ...", for those that have a lesson; "" for others.
        lesson: the key of the lesson in which this attack runs; "" without one.
        spends: False for references that have no ε at all: whatever budget they are given has no effect.
        audit_inputs: made-up neighbours for audits: those of the family, or where a mechanism's faults would not show on them, its own.
        by_category: whether it counts by category beside the place: pages offer it where records are counted so.
        extra_tab: the title of an additional tab under the map for this mechanism; "" without such a tab.
        page_settings: settings with which a page starts, where they differ from the defaults.
        noise_by_budget: whether the kind of the budget decides the noise: discrete Laplace for epsilon, discrete Gaussian for rho and for
            (epsilon, delta). Other mechanisms take one kind of budget alone, see `needs_delta`.
        whole_budget: one sentence on why there is nothing to split, shown where `shares` lists a single part.

    What every mechanism can do, whatever it counts:

    >>> import dpviz as dv
    >>> mechanism = dv.MECHANISMS["uniform_grid"].from_settings({"total_share": 0.25})
    >>> isinstance(mechanism, dv.Mechanism), mechanism.needs_delta, mechanism.non_defaults()
    (True, False, {'total_share': 0.25})
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> [(share.label, share.share) for share in mechanism.shares(domain)]
    [('total', 0.25), ('cells', 0.75)]
    >>> mechanism.with_shares([1, 9]).total_share
    0.1
    """

    family: ClassVar[str]
    takes: ClassVar[tuple[type[Any], str]]
    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    advice: ClassVar[str] = ""
    menu_group: ClassVar[str] = ""
    private: ClassVar[bool] = True
    attack: ClassVar[str] = ""
    lesson: ClassVar[str] = ""
    spends: ClassVar[bool] = True
    audit_inputs: ClassVar[tuple[Added[Any], ...]]
    by_category: ClassVar[bool] = False
    extra_tab: ClassVar[str] = ""
    page_settings: ClassVar[Mapping[str, Any]] = {}
    noise_by_budget: ClassVar[bool] = False
    whole_budget: ClassVar[str] = "All of ε buys one set of counts: there is nothing to split."

    @abstractmethod
    def release(self, data: Data, budget: Budget, entropy: Entropy) -> Output:
        """Spend a budget on private data: the only step from private to public.

        Args:
            data: the private counts.
            budget: a budget of the kind that the mechanism takes.
            entropy: the stream from which noise is drawn.

        Raises:
            BudgetError: another kind of budget, or a budget that does not fit the settings.
            DpvizError: settings that do not fit the data's frame, or arguments of the wrong type.
        """

    @property
    def needs_delta(self) -> bool:
        """Whether the budget must have a delta. Where the budget decides the noise (`noise_by_budget`), it may have one."""
        return False

    @property
    def neighbours(self) -> str:
        """Relation of the inputs that must look alike: "add_remove" (one unit more), or "bounded" (one unit replaced)."""
        return ADD_REMOVE

    @property
    def conversion(self) -> str:
        """Conversion from (epsilon, delta) to rho, for accounts that are kept in rho. The exact one holds for one release alone."""
        return "simple" if getattr(self, "accounting", None) == "paper" else "tight"

    def check(self, frame: Frame) -> None:
        """Raise an error if these settings do not fit a public frame; nothing is spent."""
        self.shares(frame)

    def check_type(self, data: object) -> None:
        """Raise an `InputError` if the data are those of another family."""
        kind, source = self.takes
        if not isinstance(data, kind):
            raise InputError(f"{source}.")

    @abstractmethod
    def check_data(self, data: Data) -> None:
        """Raise an error if the data's public facts (frame, unit and bound per unit) rule the mechanism out; nothing is spent."""

    def shares(self, frame: Frame) -> list[Share]:  # noqa: ARG002
        """List the parts of the budget on a frame; by default there is one part."""
        return [Share(label="counts", share=1.0)]

    def shares_of_rho(self, frame: Frame) -> list[Share]:
        """List the parts of the budget for Gaussian noise, where a named split may differ from that for Laplace noise."""
        return self.shares(frame)

    def with_shares(self, shares: Sequence[float]) -> Self:  # noqa: ARG002
        """Return the same mechanism with another split of the budget; without parts to change, return the mechanism itself.

        Args:
            shares: the new parts, in the order in which `Mechanism.shares` lists them.
        """
        return self

    def release_facts(self, receipt: Receipt, entropy: Entropy) -> dict[str, Any]:
        """Return the fields of a release that are the same in every family."""
        return {"mechanism": self.key, "settings": self.chosen(), "receipt": receipt, "simulation": entropy.simulation}

    @abstractmethod
    def depends_on_data(self, release: Output) -> bool:
        """Return whether other data could have led to other partitions or another set of released counts, judged by a release."""

    @abstractmethod
    def level_errors(self, release: Output) -> list[LevelError]:
        """List the noise on the counts of each level of a release, coarsest first."""

    def audit_pairs(self, budget: Budget) -> list[Neighbours]:
        """List a pair of neighbours for each of `audit_inputs`, but for those with more records per person than the mechanism takes."""

        def observe(leaves: tuple[int, ...], data: Data, entropy: Entropy) -> Observation:
            return read_release(self.release(data, budget, entropy), *leaves)

        pairs = []
        for added in self.audit_inputs:
            inputs = added.inputs(moved=self.neighbours == BOUNDED)
            try:
                self.check_data(inputs[0])
            except InputError:
                if len(added.leaves) == 1:
                    raise
            else:
                pairs.append(pair_of(added.words, inputs, partial(observe, added.leaves)))
        return pairs


AnyMechanism = Mechanism[Any, Any, Any]
"""A mechanism of any family."""


def split_shares(
    labels: Iterable[str], weights: Sequence[float], levels: Iterable[int | None] = repeat(None), *, part: float = 1.0
) -> list[Share]:
    """List what a part of the budget is spent on, in proportion to weights, with the level of the counts that each share pays for."""
    rows = zip(labels, weights, levels, strict=False)
    return [Share(label=label, share=part * weight / sum(weights), level=level) for label, weight, level in rows]


def shares_of(shares: Sequence[float]) -> list[float]:
    """Scale the shares of a split so that they add up to 1.

    Raises:
        SettingError: a share below 0 or not finite, or none above 0.
    """
    total = sum(shares)
    if not (0 < total < math.inf and min(shares) >= 0):
        raise SettingError("The shares of a split must be finite numbers of at least 0, one of them above 0.")
    return [share / total for share in shares]


def _convert_value(rule: SettingSpec, declared: Field[Any], value: Any) -> Any:
    if value is None and rule.optional:
        return None
    kind = (declared.type.__name__ if isinstance(declared.type, type) else str(declared.type)).split(" ")[0]
    try:
        value = _convert_kind(kind, value, rule.label)
    except OverflowError:
        raise SettingError(f"{rule.label} is too large a number.") from None
    if rule.choices:
        check_choice(value, rule.choices, rule.label)
    for number in value if isinstance(value, tuple) else (value,):
        if (rule.low is not None and number < rule.low) or (rule.high is not None and number > rule.high):
            raise SettingError(f"{rule.label} must be {_range_text(rule)}.")
    return value


def _format_setting(name: str, declared: Field[Any]) -> str:
    """Format a setting as a line of a docstring's Args."""
    rule = SettingSpec(name=name, default=declared.default, **declared.metadata["rule"])
    if rule.choices:
        allowed = f" One of {', '.join(map(repr, rule.choices))}."
    else:
        allowed = "" if rule.low is None and rule.high is None else f" {_range_text(rule).capitalize()}."
    return f"        {name}: {rule.label}. {rule.help}{allowed} Default {rule.default!r}."


def _range_text(rule: SettingSpec) -> str:
    low, high = (None if bound is None else f"{bound:,.12g}" for bound in (rule.low, rule.high))
    if low is not None and high is not None:
        return f"from {low} to {high}"
    return f"at least {low}" if high is None else f"at most {high}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


_KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], str]] = {
    "int": (lambda value: _is_number(value) and float(value).is_integer(), int, "a whole number"),
    "float": (lambda value: _is_number(value) and math.isfinite(value), float, "a finite number"),
    "str": (lambda value: isinstance(value, str), str, "a text"),
    "bool": (lambda value: isinstance(value, bool | np.bool_), bool, "on or off (True or False)"),
    "tuple[float,": (lambda value: hasattr(value, "__iter__") and not isinstance(value, str), tuple, "a list of numbers"),
}
"""For each annotation of a setting: whether a value is of its kind, what makes this type of it, and its words in the error."""


def _convert_kind(kind: str, value: Any, label: str) -> Any:
    """Return a value as the type of an annotation, and the entries of a tuple as numbers."""
    is_one, convert, words = _KINDS[kind]
    if not is_one(value):
        raise SettingError(f"{label} must be {words}.")
    return tuple(_convert_kind("float", part, label) for part in value) if convert is tuple else convert(value)
