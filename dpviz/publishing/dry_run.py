"""Expected errors before anything is spent, and the smallest epsilon for a wanted error. No record is used: the results are public."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pandas as pd

from dpviz.errors import SettingError, did_you_mean
from dpviz.families import FAMILIES
from dpviz.mechanisms.base import AnyLevel, AnyMechanism, LevelError
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.guessed_records import PublicGuess, count_no_records
from dpviz.publishing.private_data import PrivateData, PublicFrame
from dpviz.publishing.public_guess import EVEN, RELEASED, SEED
from dpviz.publishing.simulated_errors import FROM_DATA, simulate_errors
from dpviz.release.base import NoisyRelease

__all__ = ["FROM_DATA", "FoundEpsilon", "WantedError", "compute_error", "find_epsilon"]

ONLY_NOISE = "These errors are those of the noise alone: assumptions inside partitions and later steps add others."
SMALLEST, LARGEST = 0.001, 100.0  # epsilon
STRIDES = 10  # the search goes from the largest epsilon down to the smallest in strides of a factor of about 3
STEPS = 9  # bisections of the last stride, which determine epsilon to a few thousandths
ROUNDINGS = 10  # attempts to round epsilon up to three digits
MOST_ATTEMPTS = 1 + STRIDES + STEPS + ROUNDINGS
NOT_REACHED = "With this mechanism no ε from 0.001 to 100 gives so small an error on this level: choose a coarser level or a larger error."
GUESS_NOTE = (
    "These errors are those for {records:,} made-up records, which lie {spread}: of the noise, of what partitions hide, and of what is left"
    " out. Real data lie in another way."
)
BY_PAIR = "Noise is measured on each pair of a level of regions and a level of categories."
USEFUL_NOTE = (
    " A count is useful if its error is at most 40 % of it. Of a square, the error that a reader of the release can know must also be at"
    " most 40 % of the released answer."
)
LISTED = (
    "Which pairs of the finest level are listed depends on the data, and these errors say nothing on it: they are those of the noise in one"
    " count. A pair that is not listed has no number; coarser levels include its trips."
)
ADDED_UP = (
    "Refused: this mechanism leaves small pairs out, and this level is a sum of the released ones. The missing trips are far more than the"
    " noise, and depend on the data: choose the finest level, or make a study."
)
SMALLEST_IS_ENOUGH = "Even at ε 0.001 the error is smaller than that."


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpectedErrors:
    """Expected errors of a release. PUBLIC: computed without records.

    Attributes:
        by_level: one row per level, coarsest first, of counts by category one per pair of a level of regions and one of categories.
            Columns: level (0 for the whole), of counts by category slot_level (0 for all categories together), of (name of the level),
            numbers (how many partitions; missing for trips, whose released pairs depend on the data), stddev (root mean square of the noise
            on a count; 0 if exact; missing if the level is a sum of finer pairs) and interval (half the width of the 95 % interval). With a
            number of records, the levels of points are squares, numbers are all squares, regions or pairs, and there are the columns
            average, error, useful, of counts by category readable, released and false_share (see `LevelOutlook`).
        receipt: the steps on which the budget would be spent.
        note: sentences on what the errors do not include.
    """

    by_level: pd.DataFrame
    receipt: Receipt
    note: str


def expected_errors(
    mechanism: AnyMechanism,
    frame: PublicFrame | PrivateData,
    budget: Budget,
    *,
    records: int | None = None,
    spread: str = EVEN,
    pairs: int | None = None,
    like: NoisyRelease | None = None,
    contributions: int = 1,
    before_run: Callable[[], object] = int,
) -> ExpectedErrors:
    """Compute the errors to expect at each level before anything is counted or paid, from public values alone.

    Without a number of records, they are those of the noise, from a release of no records. With one, releases of made-up records are
    compared with these records: for mechanisms that choose partitions or pairs by the data, only that says what to expect. The number is a
    guess from public knowledge; private data never fill it in. Results are kept for the next time. It takes the processor time of fewer
    than 20 releases; of few records more releases, in all about a second.

    Args:
        mechanism: the mechanism with its settings.
        frame: a domain; regions, of trips also (origins, destinations); or counts, of which only frame, unit and bound are used.
        budget: the budget of the release.
        records: how many records or trips there may be; None for the noise alone.
        spread: how made-up records lie: "evenly"; of points and areas "as towns are"; in regions "as the denominator is".
        pairs: of trips that lie evenly, on how many pairs of the finest regions; None for all.
        like: a public release by whose counts they lie; `spread` is then not used.
        contributions: the bound m on the records of one person; of counts, theirs is used.
        before_run: called before each release and each comparison; an exception from it ends the simulation.

    Raises:
        SettingError: no built mechanism; or how records lie without their number.
        InputError: a frame of another family.
        DpvizError: settings, frame, budget or guess do not fit together.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=6)
    >>> errors = dv.expected_errors(dv.PathTree(), domain, dv.PureBudget(1), records=200_000, spread="as towns are").by_level
    >>> errors["of"].tolist()[-1], 3 < errors["error"].iloc[-1] < 30, 3000 < errors["useful"].iloc[-1] < 4096
    ('64 x 64 squares', np.True_, np.True_)
    >>> areas = dv.load_sample("us_residents")
    >>> dv.expected_errors(dv.RegionTree(), areas, dv.PureBudget(1)).by_level["of"].tolist()
    ['the whole', 'state', 'county']
    """
    data = count_no_records(mechanism, frame, contributions)
    if records is None and (spread != EVEN or pairs is not None or like is not None):
        raise SettingError("spread, pairs and like say how made-up records lie: give their number, too, as in records=10_000.")
    if records is not None:
        guess = PublicGuess(records=records, spread=spread if like is None else RELEASED, pairs=pairs, like=like)
        outlook = simulate_errors(mechanism, data, budget, guess, before_run)
        note = GUESS_NOTE.format(records=records, spread=guess.spread) + USEFUL_NOTE
        return _make_errors(outlook.levels, outlook.receipt, [note])
    release = dry_run(mechanism, data, budget)
    notes = [FROM_DATA] if mechanism.depends_on_data(release) else []
    notes += [LISTED] if release.lists_pairs else []
    return _make_errors(mechanism.level_errors(release), release.receipt, [*notes, ONLY_NOISE])


def _make_errors(levels: Sequence[LevelError], receipt: Receipt, notes: Sequence[str]) -> ExpectedErrors:
    """Make the table of levels, without what says nothing where there are no categories."""
    table = pd.DataFrame([vars(level) for level in levels])
    by_category = bool(table["slot_level"].any())
    table = table if by_category else table.drop(columns=["slot_level", "readable"], errors="ignore")
    return ExpectedErrors(by_level=table, receipt=receipt, note=" ".join([*([BY_PAIR] if by_category else []), *notes]))


def dry_run(mechanism: AnyMechanism, data: PrivateData, budget: Budget) -> NoisyRelease:
    """Run the mechanism without records, on the domain or regions of `data`, and return the release: a simulation, so never published."""
    release: NoisyRelease = mechanism.release(data.without_records(), budget, Entropy.seeded(SEED))
    return release


@dataclass(frozen=True, kw_only=True)
class WantedError:
    """The error that is wanted.

    Attributes:
        error: largest acceptable root mean square error, in records or trips; above 0.
        level: zoom level of points (2**level x 2**level equal blocks), or level of the regions of trips or areas, 1 for the coarsest (of
            areas also 0, the whole); of counts by category perhaps a pair, of a level of regions and one of categories.
        delta: for mechanisms that need one.
        gaussian: whether the budget has this delta where the kind of the budget decides the noise; else it is epsilon alone.
        records: a public estimate of the number of records: the error is then that of releases of as many made-up records. With None it is
            that of the noise alone, and partitions that depend on data are those of empty data.
        spread: how the made-up records lie, one of `SPREADS` of `guessed_records`.
        pairs: of trips that lie evenly, on how many pairs of the finest regions; None for all.
        like: the earlier release by whose counts they lie; None for another spread.

    >>> WantedError(error=20, level=2, records=100_000).spread
    'evenly'
    """

    error: float
    level: AnyLevel
    delta: float = 1e-8
    gaussian: bool = False
    records: int | None = None
    spread: str = EVEN
    pairs: int | None = None
    like: NoisyRelease | None = None

    @property
    def guess(self) -> PublicGuess | None:
        """The public guess of the records; None without their number."""
        if self.records is None:
            return None
        return PublicGuess(records=self.records, spread=self.spread, pairs=self.pairs, like=self.like)


@dataclass(frozen=True, kw_only=True)
class FoundEpsilon:
    """The smallest epsilon that gives the wanted error.

    Attributes:
        epsilon: 0.001 to 100; None if none in that range is enough.
        error: the expected error with this epsilon; NaN if there is no such epsilon.
        note: sentences on how the epsilon was found, and on what the error does not include.
    """

    epsilon: float | None
    error: float
    note: str


def find_epsilon(
    mechanism: AnyMechanism,
    frame: PublicFrame | PrivateData,
    wanted: WantedError | float,
    *,
    level: int | None = None,
    contributions: int = 1,
    before_attempt: Callable[[], object] = int,
    **how: Any,
) -> FoundEpsilon:
    """Find the smallest epsilon whose expected error is small enough, before anything is counted or paid.

    The search goes down from epsilon 100 as long as the error is small enough, and then bisects the last stride, on a logarithmic scale.
    So all larger epsilons that were tried are enough, too. A search upwards could stop too early: very small budgets can give coarse
    partitions with little noise, and their large uniformity error is not part of the expected error.

    Without a guess of how many records there are, the error comes from the noise alone. With one, it is that of releases of made-up
    records, as `expected_errors` states it for the level: of the noise, of what partitions hide, and of what is left out.

    Args:
        mechanism: the mechanism with its settings.
        frame: a domain; regions, of trips also (origins, destinations); or counts, of which only frame, unit and bound are used.
        wanted: the largest acceptable error, in records or trips; or a `WantedError` of `dpviz.publishing.dry_run`, which says all.
        level: of an error that is given as a number: the zoom level of points, or the level of regions.
        contributions: the bound m on the records of one person; of counts, theirs is used.
        how: of an error that is given as a number, `delta`, `gaussian`, `records`, `spread`, `pairs` and `like`, as `expected_errors` and
            `WantedError` describe them.
        before_attempt: called before each of at most `MOST_ATTEMPTS` attempts; an exception from it ends the search.

    Raises:
        SettingError: the wanted error is not above 0; the level is missing or does not exist; an unknown keyword; or a level or keywords
            beside a `WantedError`, which has its own.
        DpvizError: settings, domain or regions do not fit the mechanism.

    >>> import dpviz as dv
    >>> domain = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
    >>> dv.find_epsilon(dv.PathTree(), domain, 5, level=3, records=1000).epsilon
    0.192
    >>> regions = dv.load_sample("us_flights").regions
    >>> dv.find_epsilon(dv.FlatGaussian(), regions, 20, level=3, delta=1e-6).epsilon
    0.298
    """
    wanted = _read_wanted(wanted, level, how)
    trials = _Trials(mechanism=mechanism, data=count_no_records(mechanism, frame, contributions), wanted=wanted)

    def error(epsilon: float) -> float:
        before_attempt()
        return trials.error(epsilon)

    if not (math.isfinite(wanted.error) and wanted.error > 0):
        raise SettingError("The wanted error must be a finite number above 0.")
    if trials.sums_lack_pairs:
        return FoundEpsilon(epsilon=None, error=math.nan, note=ADDED_UP)
    if not error(LARGEST) <= wanted.error:
        return FoundEpsilon(epsilon=None, error=math.nan, note=f"{NOT_REACHED} {trials.write_note()}")
    note, high = trials.write_note(), math.log(LARGEST)
    stride = (math.log(LARGEST) - math.log(SMALLEST)) / STRIDES
    for number in range(1, STRIDES + 1):
        low = math.log(LARGEST) - number * stride
        if error(math.exp(low)) > wanted.error:
            break
        high = low
    else:
        least = error(SMALLEST)
        return FoundEpsilon(epsilon=SMALLEST, error=least, note=f"{SMALLEST_IS_ENOUGH} {note}")
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = error(math.exp(middle)) <= wanted.error
        low, high = (low, middle) if enough else (middle, high)
    epsilon, rounded_error = _round_to_enough(math.exp(high), wanted, error)
    return FoundEpsilon(epsilon=epsilon, error=rounded_error, note=note)


def _read_wanted(wanted: WantedError | float, level: int | None, how: dict[str, Any]) -> WantedError:
    """Put an error that is given as a number, its level and its keywords together."""
    known = [each.name for each in fields(WantedError) if each.name not in ("error", "level")]
    for name in how:
        if name not in known:
            raise SettingError(f"find_epsilon has no {name!r}; there are level, {', '.join(known)}.{did_you_mean(name, known)}")
    if isinstance(wanted, WantedError):
        if level is not None or how:
            raise SettingError(
                "A WantedError says all of what is wanted: give the level and the rest in it alone, or the error as a number."
            )
        return wanted
    if level is None:
        raise SettingError("Say at which level the error is wanted: level=3, for example.")
    return WantedError(error=wanted, level=level, **how)


def _round_to_enough(epsilon: float, wanted: WantedError, error: Callable[[float], float]) -> tuple[float, float]:
    """Round epsilon up to three digits, so that its error is still small enough. Return the rounded epsilon and its error.

    A larger epsilon may have a larger error, since partitions depend on it. So several roundings are tried; if none fits, epsilon stays.
    """
    rounded = epsilon
    for _ in range(ROUNDINGS):
        step = 10.0 ** (math.floor(math.log10(rounded)) - 2)  # of the third digit
        rounded = float(f"{math.ceil(round(rounded / step, 6)) * step:.3g}")
        if (reached := error(rounded)) <= wanted.error:
            return rounded, reached
        rounded *= 1.000_01
    return epsilon, error(epsilon)


def compute_error(mechanism: AnyMechanism, data: PrivateData, wanted: WantedError, epsilon: float) -> float:
    """Compute the expected root mean square error at the wanted level for a given epsilon. Raises the errors of `find_epsilon`.

    Args:
        mechanism: the mechanism with its settings.
        data: only domain or regions, unit and bound per person are used, not the records.
        wanted: all of it but the error is used.
        epsilon: above 0.

    Returns:
        The error, in records or trips.
    """
    return _Trials(mechanism=mechanism, data=data, wanted=wanted).error(epsilon)


def check_level(data: PrivateData, level: AnyLevel) -> None:
    """Raise a `SettingError` if data have no such level: a zoom level of points, a level of regions, or a pair with one of categories."""
    levels, categories = data.level_range, getattr(data, "categories", None)
    place, slot = level if isinstance(level, tuple) else (level, 0)
    if slot not in range(1 if categories is None else categories.depth + 1):
        raise SettingError("The data have no such level of categories.")
    if place not in levels:
        raise SettingError(f"{data.has_levels} {levels[0]} to {levels[-1]}.")


def make_budget(mechanism: AnyMechanism, epsilon: float, *, delta: float, gaussian: bool) -> Budget:
    """Make the budget of a simulation: with δ if the mechanism needs it, or where the budget decides the noise and it is Gaussian."""
    has_delta = mechanism.needs_delta or (mechanism.noise_by_budget and gaussian)
    return ApproxBudget(repr(epsilon), repr(delta)) if has_delta else PureBudget(repr(epsilon))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Trials:
    """Releases without the records, or of made-up ones, at several epsilons.

    Attributes:
        mechanism: the mechanism with its settings.
        data: only domain or regions, unit and bound per person are used, not the records.
        wanted: all of it but the error is used.
    """

    mechanism: AnyMechanism
    data: PrivateData
    wanted: WantedError

    def error(self, epsilon: float) -> float:
        """Compute the expected error at the wanted level; raises `SettingError` if there is no such level."""
        check_level(self.data, self.wanted.level)
        budget, level, guess = self._budget(epsilon), self.wanted.level, self.wanted.guess
        if guess is not None:
            return simulate_errors(self.mechanism, self.data, budget, guess, level=level).levels[0].error
        release = dry_run(self.mechanism, self.data, budget)
        return float(FAMILIES[release.family].outlook.noise_at(release, level))

    def _budget(self, epsilon: float) -> Budget:
        return make_budget(self.mechanism, epsilon, delta=self.wanted.delta, gaussian=self.wanted.gaussian)

    @cached_property
    def at_epsilon_one(self) -> Any:
        """A release without records at epsilon 1, from which the notes are written."""
        return dry_run(self.mechanism, self.data, self._budget(1.0))

    @property
    def sums_lack_pairs(self) -> bool:
        """Whether the level is a sum of finer pairs, and the mechanism leaves some out, and no guess says how many trips these have."""
        release = self.at_epsilon_one
        return self.wanted.records is None and release.is_sum(self.wanted.level) and not release.every_pair

    def write_note(self) -> str:
        """Write sentences on what the error of `find_epsilon` does not include."""
        release, wanted, notes = self.at_epsilon_one, self.wanted, []
        if wanted.records is not None:
            return GUESS_NOTE.format(records=wanted.records, spread=wanted.spread)
        if release.lists_pairs and wanted.level == release.level_number(None):
            notes.append(LISTED)
        elif self.mechanism.depends_on_data(release):
            notes.append(FAMILIES[release.family].outlook.data_dependent)
        if release.is_sum(wanted.level):
            notes.append(
                "This level is a sum of finer pairs; the error assumes that all of them are released, and fewer pairs have less noise."
            )
        return " ".join([*notes, ONLY_NOISE])
