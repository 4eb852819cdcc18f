"""The base of every mechanism of areas, and its helper that splits the budget, counts with noise, and makes the release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Integers, Mask
from dpviz.data.areas import AreaCounts
from dpviz.errors import InputError
from dpviz.mechanisms.audit_areas import AREAS, read_area_release
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED, NEIGHBOURS, LevelError, Mechanism, setting
from dpviz.mechanisms.budget_noise import Change, Split, split_budget
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.budget import Budget, PureBudget, ZcdpBudget
from dpviz.privacy.consistency import least_squares
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.privacy.nonnegative_fit import NoisyStage, Root, fit_nonnegative, round_to_whole
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.area_release import AreaRelease
from dpviz.release.intervals import half_widths
from dpviz.space.regions import Regions

NO_AREAS = "A mechanism of areas takes AreaCounts: see AreaCounts.from_table and AreaCounts.from_xy."
_SMALLEST_VARIANCE = 1e-12  # of a level in the fit, whose weights are inverse variances; the noise of huge budgets has a variance of 0
_SAME_NUMBER = "how many records (or persons) there are: the same for all neighbours"
_SELECTED = (
    "counts under a threshold are not shown: of the regions that are shown, intervals of single regions hold less often than 95 %; those"
    " for all regions at once hold for them, too"
)
_NONNEGATIVE = (
    "spread and intervals are those of the best unbiased estimates; released counts are non-negative and add up, so that large ones are"
    " too low on average where most regions around them are empty"
)


def neighbours_setting() -> Any:
    """Declare the setting `neighbours` of a mechanism of areas."""
    return setting(
        ADD_REMOVE,
        "Neighbours",
        choices=NEIGHBOURS,
        help="add_remove: one record (or person) is added or removed. bounded: one is replaced by another, for twice the noise (ε) or the"
        " square root of two (ρ).",
    )


@dataclass(frozen=True, kw_only=True)
class AreaMechanism(Mechanism[AreaCounts, Regions, AreaRelease]):
    """Base of every mechanism of areas: it counts records in nested regions, and releases noisy counts of every level.

    The kind of the budget decides the noise: discrete Laplace for epsilon, discrete Gaussian for rho and for (epsilon, delta).

    A mechanism in full, which counts the leaves; larger regions are sums:

    >>> import dpviz as dv
    >>> import pandas as pd
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Leaves(AreaMechanism):
    ...     key, title, summary = "leaves", "Leaves", "Counts the leaves with noise."
    ...     def release(self, areas, budget, entropy):
    ...         self.check_data(areas)
    ...         counter = NoisyAreas(areas=areas, entropy=entropy, neighbours=self.neighbours)
    ...         weights = [0.0] * areas.regions.depth + [1.0]
    ...         noisy = counter.count_levels(counter.split(budget, self.title, "tight", weights))
    ...         return counter.make_release(self, budget, noisy)
    >>> table = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["district", "tract"])
    >>> areas = dv.AreaCounts.from_counts([900, 40, 500], regions=regions)
    >>> Leaves().release(areas, PureBudget(1000), Entropy.seeded(1)).to_frame("district")["count"].tolist()
    [940.0, 500.0]
    """

    family: ClassVar[str] = "areas"
    noise_by_budget: ClassVar[bool] = True

    @property
    def conversion(self) -> str:
        """Conversion from (epsilon, delta) to rho, for accounts that are kept in rho. The exact one holds for one release alone."""
        return "simple" if getattr(self, "accounting", None) == "paper" else "tight"

    def check_data(self, data: AreaCounts) -> None:
        """Raise an error if the input is not AreaCounts, or its regions do not fit the settings (see `check`); nothing is spent.

        Raises:
            InputError: not AreaCounts.
            BudgetError: weights that do not fit the levels.
        """
        if not isinstance(data, AreaCounts):
            raise InputError(NO_AREAS)
        self.check(data.regions)

    def depends_on_data(self, release: AreaRelease) -> bool:  # noqa: ARG002
        """Return False: the regions are public, and every one of them is released."""
        return False

    def level_errors(self, release: AreaRelease) -> list[LevelError]:
        """List the root mean square deviation of the regions of each level, in records."""
        regions, errors = release.regions, []
        for level in range(regions.depth + 1):
            stddev = np.sqrt(np.mean(release.stddev(level) ** 2))
            of = regions.levels[level - 1] if level else "the whole"
            interval = float(half_widths(release.noise, stddev))
            errors.append(LevelError(level=level, of=of, numbers=regions.size(level), stddev=float(stddev), interval=interval))
        return errors

    def expected_errors(self, regions: Regions, budget: Budget, contributions: int = 1) -> list[LevelError]:
        """List the noise that a release of any counts of these regions would have; no private data are needed.

        The stated spread is a function of the public regions, the settings and the budget alone. So it is read from a release of no
        records with seeded noise.

        Args:
            regions: the public regions.
            budget: of the release.
            contributions: the bound m on the records of one unit.

        Raises:
            BudgetError: another kind of budget, or a split that does not fit the levels.
        """
        nobody = AreaCounts(regions=regions, leaf=np.zeros(0, np.int32), count=np.zeros(0, np.int64), contributions=contributions)
        return self.level_errors(self.release(nobody, budget, Entropy.seeded(0)))

    def audit_pairs(self, budget: Budget) -> list[Neighbours]:
        """List pairs of neighbours with runs of the mechanism: a record more or moved, and several records of one person."""

        def run(areas: AreaCounts) -> Callable[[Entropy], Observation]:
            return lambda entropy: read_area_release(self.release(areas, budget, entropy))

        inputs = [(pair.words, pair.inputs(moved=self.neighbours == BOUNDED)) for pair in AREAS]
        return [Neighbours(words=words, one=run(one), other=run(other)) for words, (one, other) in inputs]


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyLevels:
    """Noisy counts of levels.

    Attributes:
        noisy: g + 1 arrays, (n_k,) noisy counts; None for a level that was not measured.
        variance: g + 1 variances of the noise; infinite for a level that was not measured.
    """

    noisy: tuple[Integers | None, ...]
    variance: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class NoisyAreas:
    """One run of a mechanism on private areas: adds noise to counts, and keeps the receipt.

    Attributes:
        areas: the private input; its contribution bound scales every sensitivity.
        entropy: the stream from which noise is drawn.
        neighbours: "add_remove" if one unit's m records are added or removed, "bounded" if they are replaced by at most m others.
        steps: the steps spent so far, for the receipt.
        notes: what the receipt notes, such as another accounting than the chosen one.
        conversions: the rho to which (epsilon, delta) was converted, and the conversion; empty without one.

    Raises:
        InputError: not AreaCounts.
        SettingError: `entropy` is not an `Entropy`.
    """

    areas: AreaCounts
    entropy: Entropy
    neighbours: str
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conversions: list[tuple[ZcdpBudget, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.areas, AreaCounts):
            raise InputError(NO_AREAS)
        require_entropy(self.entropy)

    @property
    def change(self) -> Change:
        """How one unit changes a level's counts: one count by one per record that is added or removed, two per replaced record.

        A record lies in one region of a level at most. So m records change the counts of a level by at most m in all, with a sum of squares
        of at most m**2, reached by m records in one region. Where at most m records leave regions (changes -a) and at most m come (changes
        b, both >= 0), the absolute sum of b - a is at most 2 m, and the sum of (b - a)**2 at most that of a**2 + b**2, which is at most
        2 m**2.
        """
        return Change(contributions=self.areas.contributions, ones=2 if self.neighbours == BOUNDED else 1)

    def split(self, budget: Budget, mechanism: str, accounting: str, weights: Sequence[float]) -> Split:
        """Split a budget over the levels.

        Args:
            budget: epsilon; rho; or (epsilon, delta), which is converted to rho.
            mechanism: the name of the mechanism, for errors.
            accounting: how (epsilon, delta) is converted: "exact", "tight" or "paper"; see `find_gaussian_rho`.
            weights: g + 1 weights of the levels, the whole's first; at least 0.

        Raises:
            BudgetError: another kind of budget, delta = 0, or weights out of range.
        """
        split = split_budget(budget, mechanism, weights, self.change, accounting)
        if split.converted is not None and split.conversion is not None:
            self.conversions.append((split.converted, split.conversion))
        self.notes.extend(split.notes)
        return split

    def count_levels(self, split: Split) -> NoisyLevels:
        """Count every region of the levels that have a part of the budget, empty regions included.

        Args:
            split: g + 1 parts, the whole's first.
        """
        noisy: list[Integers | None] = []
        variance: list[float] = []
        for level, (true, part) in enumerate(zip(self.areas.level_counts(), split.parts, strict=True)):
            found = self._count(level, true, part, gaussian=split.gaussian) if part else (None, np.inf)
            noisy.append(found[0])
            variance.append(found[1])
        return NoisyLevels(noisy=tuple(noisy), variance=tuple(variance))

    def _count(self, level: int, true: Integers, part: Fraction, *, gaussian: bool) -> tuple[Integers, float]:
        """Return (n,) noisy counts of a level's regions, no two of which share a record, and the variance of the noise."""
        purpose = f"regions of level {self.areas.regions.levels[level - 1]}" if level else "the whole"
        self.steps.append(self.change.step(part, gaussian=gaussian, purpose=purpose, level=level, counts=len(true)))
        if gaussian:
            noisy = discrete_gaussian(true, ZcdpBudget(part), self.entropy, self.change.squares)
        else:
            noisy = discrete_laplace(true, PureBudget(part), self.entropy, self.change.total)
        return noisy, self.change.variance(part, gaussian=gaussian)

    def make_release(
        self, mechanism: AreaMechanism, budget: Budget, levels: NoisyLevels, *, nonnegative: bool = False, least: int | None = None
    ) -> AreaRelease:
        """Make the release of noisy levels, whose counts are made consistent by least squares.

        Args:
            mechanism: with its settings.
            budget: the total budget.
            levels: noisy counts, those of the leaves among them.
            nonnegative: whether counts are non-negative whole numbers that add up and fit the noisy counts best.
            least: noisy counts of leaves under this public threshold are not shown; None to show all.
        """
        tree = self.areas.regions.hierarchy
        sizes = np.diff(tree.starts)
        by_level = [np.full(size, np.nan) if of is None else of for size, of in zip(sizes, levels.noisy, strict=True)]
        noisy = np.concatenate(by_level).astype(np.float64)
        variance = np.repeat(levels.variance, sizes)
        estimate, spread = least_squares(tree, noisy, variance)
        count = estimate
        if nonnegative:
            root, stages = make_stages(self.areas.regions, levels)
            count = np.concatenate(round_to_whole(stages, fit_nonnegative(root, stages))).astype(np.float64)
        hidden: Mask | None = None if least is None or levels.noisy[-1] is None else levels.noisy[-1] < least
        return AreaRelease(
            mechanism=mechanism.key,
            settings=mechanism.chosen(),
            regions=self.areas.regions,
            noisy=noisy,
            noise_variance=variance,
            unbiased=estimate,
            count=count,
            spread=spread,
            receipt=self.receipt(budget, private=mechanism.private),
            steps=_describe_steps(levels, nonnegative=nonnegative, least=least),
            simulation=self.entropy.simulation,
            approximate=_NONNEGATIVE if nonnegative else None if hidden is None else _SELECTED,
            hidden=hidden,
        )

    def receipt(self, total: Budget, *, private: bool) -> Receipt:
        """Make the receipt of all steps so far."""
        bounded = self.neighbours == BOUNDED
        converted, conversion = self.conversions[0] if self.conversions else (None, None)
        return Receipt(
            total=total,
            steps=tuple(self.steps),
            unit=self.areas.unit,
            neighbours="replace one" if bounded else "add or remove one",
            contributions=self.areas.contributions,
            row_stable=self.areas.row_stable,
            unit_declared=self.areas.unit_declared,
            unprotected=("the regions and their levels", "the mechanism and its settings", *((_SAME_NUMBER,) if bounded else ())),
            notes=tuple(self.notes),
            converted=converted,
            conversion=conversion,
            private=private,
        )


def _describe_steps(levels: NoisyLevels, *, nonnegative: bool, least: int | None) -> tuple[str, ...]:
    """Describe the steps of post-processing, in order."""
    summed = "least squares" if sum(np.isfinite(levels.variance)) > 1 else "larger regions are sums"
    fitted = ("non-negative least squares on the whole tree", "whole numbers that add up") if nonnegative else ()
    return summed, *fitted, *(() if least is None else (f"finest regions under {least:,} not shown",))


def make_stages(regions: Regions, levels: NoisyLevels) -> tuple[Root, list[NoisyStage]]:
    """Make the root and the stages of a fit from noisy levels of regions."""
    variance = np.maximum(levels.variance, _SMALLEST_VARIANCE).tolist()
    stages = [
        NoisyStage(
            starts=regions.first_child(level - 1)[:-1],
            noisy=None if of_level is None else of_level.astype(np.float64),
            variance=variance[level] if of_level is not None else 0.0,
            size=regions.size(level),
        )
        for level, of_level in enumerate(levels.noisy[1:], start=1)
    ]
    root = levels.noisy[0]
    return Root(count=0.0 if root is None else float(root[0]), variance=variance[0]), stages
