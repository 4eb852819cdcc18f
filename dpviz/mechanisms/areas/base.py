"""The base of every mechanism of areas, which counts the levels of regions and makes the release; noise is drawn in `Run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats
from dpviz.data.areas import AreaCounts
from dpviz.data.counts import PERSON, RECORD
from dpviz.mechanisms.audit import AREAS, Added
from dpviz.mechanisms.base import ADD_REMOVE, BOUNDED, NEIGHBOURS, PUBLIC_REGIONS, LevelError, Mechanism, SettingSpec, setting
from dpviz.mechanisms.budget_noise import accounting_setting
from dpviz.mechanisms.run import Run
from dpviz.privacy.budget import Budget
from dpviz.privacy.consistency import SMALLEST_VARIANCE, least_squares
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.nonnegative_fit import NoisyStage, Root, fit_nonnegative, round_to_whole
from dpviz.release.area_release import AreaRelease
from dpviz.space.cross import Cross, categories_of, regions_of
from dpviz.space.regions import Regions

SAME_NUMBER = "how many records (or persons) there are: the same for all neighbours"
_SELECTED = (
    "counts under a threshold are not shown: of the regions that are shown, intervals of single regions hold less often than 95 %; those"
    " for all regions at once hold for them, too"
)
_NONNEGATIVE = (
    "spread and intervals are those of the best unbiased estimates; released counts are non-negative and add up, so that large ones are"
    " too low on average where most regions around them are empty"
)


@dataclass(frozen=True, kw_only=True)
class AreaMechanism(Mechanism[AreaCounts, Regions | Cross, AreaRelease]):
    """Base of every mechanism of areas: it counts records in nested regions, and releases noisy counts of every level.

    The kind of the budget decides the noise: discrete Laplace for epsilon, discrete Gaussian for rho and for (epsilon, delta). Every
    mechanism of areas has the settings `neighbours` and `accounting`, which `Run` reads: none has to declare them. Of counts by category,
    it counts the regions alone, all slots together, unless it says otherwise.

    A mechanism in full, which counts the leaves; larger regions are sums:

    >>> import dpviz as dv
    >>> import pandas as pd
    >>> from dpviz.privacy.budget import PureBudget
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Leaves(AreaMechanism):
    ...     key, title, summary = "leaves", "Leaves", "Counts the leaves with noise."
    ...     def release(self, areas, budget, entropy):
    ...         run = Run.of(self, areas, budget, entropy)
    ...         return self.make_release(run, *self.count_levels(run, [0.0] * areas.regions.depth + [1.0]))
    >>> table = pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["district", "tract"])
    >>> areas = dv.AreaCounts.from_counts([900, 40, 500], regions=regions)
    >>> Leaves().release(areas, PureBudget(1000), Entropy.seeded(1)).to_frame("district")["count"].tolist()
    [940.0, 500.0]
    >>> Leaves(neighbours="bounded").release(areas, PureBudget(1000), Entropy.seeded(1)).receipt.steps[0].sensitivity
    Fraction(2, 1)
    """

    family: ClassVar[str] = "areas"
    takes: ClassVar[tuple[type[Any], str]] = (
        AreaCounts,
        "A mechanism of areas takes AreaCounts: see AreaCounts.from_table and AreaCounts.from_xy",
    )
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = AREAS
    noise_by_budget: ClassVar[bool] = True

    neighbours: str = setting(
        ADD_REMOVE,
        "Neighbours",
        choices=NEIGHBOURS,
        help="add_remove: one record (or person) is added or removed. bounded: one is replaced by another, for twice the noise (ε) or the"
        " square root of two (ρ).",
    )
    accounting: str = accounting_setting("exact", "record")

    @classmethod
    def rules(cls) -> Iterator[SettingSpec]:
        """Iterate over the rules: first the settings of the mechanism, then those of all mechanisms of areas."""
        return iter(sorted(super().rules(), key=lambda rule: rule.name in ("neighbours", "accounting")))

    def check_data(self, data: AreaCounts) -> None:
        """Raise an error if the input is not AreaCounts, or its regions do not fit the settings (see `check`); nothing is spent.

        Raises:
            InputError: not AreaCounts.
            BudgetError: weights that do not fit the levels.
        """
        self.check_type(data)
        self.check(data.frame)

    def count_levels(self, run: Run[AreaCounts], weights: Sequence[float]) -> tuple[Floats, Floats]:
        """Split the budget over the levels, and count every region of those that have a part, empty regions included.

        Args:
            run: of this mechanism.
            weights: g + 1 weights of the levels, the whole's first; at least 0.

        Returns:
            (n,) noisy counts of the regions of all levels, NaN where they are not measured, and (n,) variances, infinite there.

        Raises:
            BudgetError: delta = 0, or weights out of range.
        """
        titles = ("the whole", *(f"regions of level {name}" for name in run.data.regions.levels))
        true = np.concatenate(run.data.level_counts())
        return run.measure_levels(run.data.regions.hierarchy, run.split(weights), true, purpose=lambda level: titles[level])

    def make_release(
        self, run: Run[AreaCounts], noisy: Floats, variance: Floats, *, nonnegative: bool = False, least: int | None = None
    ) -> AreaRelease:
        """Make the release of noisy counts, which are made consistent by least squares.

        Args:
            run: of this mechanism.
            noisy: (n,) noisy counts of the regions of all levels, those of the leaves among them; NaN where they are not measured.
            variance: (n,) variances of the noise, infinite where regions are not measured.
            nonnegative: whether counts are non-negative whole numbers that add up and fit the noisy counts best.
            least: noisy counts of leaves under this public threshold are not shown; None to show all.
        """
        regions = run.data.regions
        count, spread = least_squares(regions.hierarchy, noisy, variance)
        estimate = count
        if nonnegative:
            root, stages = make_stages(regions, noisy, variance)
            count = np.concatenate(round_to_whole(stages, fit_nonnegative(root, stages))).astype(np.float64)
        hidden = None if least is None else noisy[regions.hierarchy.at_depth(regions.depth)] < least
        several = np.isfinite(variance[list(regions.hierarchy.starts[:-1])]).sum() > 1
        fitted = ("non-negative least squares on the whole tree", "whole numbers that add up") if nonnegative else ()
        public_total = (SAME_NUMBER,) if self.neighbours == BOUNDED else ()
        return AreaRelease(
            regions=regions,
            noisy=noisy,
            noise_variance=variance,
            unbiased=estimate,
            count=count,
            spread=spread,
            **self.release_facts(run.receipt((*PUBLIC_REGIONS, *public_total), run.notes), run.entropy),
            steps=(
                "least squares" if several else "larger regions are sums",
                *fitted,
                *(() if least is None else (f"finest regions under {least:,} not shown",)),
            ),
            approximate=_NONNEGATIVE if nonnegative else None if hidden is None else _SELECTED,
            hidden=hidden,
        )

    def depends_on_data(self, release: AreaRelease) -> bool:  # noqa: ARG002
        """Return False: the regions are public, and every one of them is released."""
        return False

    def level_errors(self, release: AreaRelease) -> list[LevelError]:
        """List the root mean square deviation of the regions of each level, in records."""
        names = ("the whole", *release.regions.levels)
        return [LevelError.of_noise(level, name, release.stddev(level), release.noise) for level, name in enumerate(names)]

    def expected_errors(
        self, frame: Regions | Cross, budget: Budget, contributions: int = 1, per_slot: int | None = None
    ) -> list[LevelError]:
        """List the noise that a release of any counts of these regions would have; no private data are needed.

        Args:
            frame: the public regions, or regions by categories.
            budget: of the release.
            contributions: the bound m on the records of one unit.
            per_slot: the bound b on those in one slot; None for m.

        Raises:
            BudgetError: another kind of budget, or a split that does not fit the levels.
        """
        return self.level_errors(self.release_nothing(frame, budget, contributions, per_slot))

    def release_nothing(self, frame: Regions | Cross, budget: Budget, contributions: int, per_slot: int | None) -> AreaRelease:
        """Make a release of no records with seeded noise: its stated spread is that of any records, a function of public values alone.

        Arguments and errors are those of `expected_errors`.
        """
        nothing = AreaCounts(
            regions=regions_of(frame),
            categories=categories_of(frame),
            leaf=np.zeros(0, np.int32),
            count=np.zeros(0, np.int64),
            contributions=contributions,
            unit=RECORD if per_slot is None else PERSON,
            per_slot=per_slot,
        )
        return self.release(nothing, budget, Entropy.seeded(0))


def make_stages(regions: Regions, noisy: Floats, variance: Floats) -> tuple[Root, list[NoisyStage]]:
    """Make the root and the stages of a fit from (n,) noisy counts of the regions of all levels, NaN where they are not measured."""
    starts = regions.hierarchy.starts
    measured = np.isfinite(variance[list(starts[:-1])])
    stages = [
        NoisyStage(
            starts=regions.first_child(level - 1)[:-1],
            noisy=noisy[regions.hierarchy.at_depth(level)] if measured[level] else None,
            variance=max(float(variance[starts[level]]), SMALLEST_VARIANCE) if measured[level] else 0.0,
            size=regions.size(level),
        )
        for level in range(1, regions.depth + 1)
    ]
    return Root(count=float(noisy[0]) if measured[0] else 0.0, variance=max(float(variance[0]), SMALLEST_VARIANCE)), stages
