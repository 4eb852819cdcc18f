"""The base of every mechanism of trips, which makes the release of its stages, and sums for coarser ones; noise is drawn in `Run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Places
from dpviz.data.trips import TripCounts
from dpviz.errors import InputError, SettingError
from dpviz.mechanisms.audit import PEOPLE, TRIPS, Added
from dpviz.mechanisms.base import BOUNDED, NEIGHBOURS, PUBLIC_REGIONS, LevelError, Mechanism, Share, setting, split_shares
from dpviz.mechanisms.budget_noise import split_budget
from dpviz.mechanisms.run import Run
from dpviz.mechanisms.sensitivity import Sensitivity
from dpviz.privacy.budget import Budget
from dpviz.release.intervals import STDDEVS
from dpviz.release.trip_release import StageCounts, TripRelease, sum_pairs
from dpviz.space.nested import ROOT
from dpviz.space.pair_tree import SIDES, PairTree
from dpviz.space.regions import Regions

WEIGHTS = "weights"
"""The name of the setting that holds custom weights."""


EXACT_TOTAL = "Which data must look alike. If one trip (or person) is replaced, the total is published exactly; else it is protected."


def neighbours_setting(text: str = EXACT_TOTAL) -> Any:
    """Declare the setting `neighbours`; `text` is its help, by default that of a mechanism whose bounded form publishes the exact total."""
    return setting(BOUNDED, "Neighbours", choices=NEIGHBOURS, help=text)


def first_side_setting() -> Any:
    """Declare the setting `tree`: the side of a pair that is refined first."""
    return setting(
        "destination", "Refine first", choices=SIDES, help="Which side of a pair becomes finer first, from one level to the next."
    )


def false_discovery_setting(label: str, text: str, *, name: str, empty: str, when: tuple[str, Any] | None = None) -> Any:
    """Declare the setting `false_discovery`; `name` and `empty` say in its error what it is, and what follows if it is empty."""
    good = f"a {name} from 0.0001 to 0.9999, such as 0.05 for 5 %, or leave it empty (None in Python), so that {empty}"
    return setting(None, label, optional=True, low=0.0001, high=0.9999, when=when, help=text, good=good)


def add_coarser_stages(tree: PairTree, finest: StageCounts, stage: int) -> list[StageCounts]:
    """Add to a stage all coarser ones, as sums of its counts.

    Args:
        tree: the tree of pairs.
        finest: the stage.
        stage: its number.

    Returns:
        Stages 0 to `stage`; the last one is `finest`.
    """
    stages = [finest]
    for above in range(stage - 1, -1, -1):
        (a, b), finer, below = tree.levels(above), tree.levels(above + 1), stages[0]
        sums = sum_pairs(
            tree.origins.ancestors(a, finer[0])[below.origin],
            tree.destinations.ancestors(b, finer[1])[below.destination],
            below.count,
            tree.destinations.size(b),
        )
        stages.insert(0, make_summed_stage(sums.origin, sums.destination, sums.count))
    return stages


def make_measured_stage(origin: Places, destination: Places, noisy: Integers, variance: float, measured: int) -> StageCounts:
    """Make a stage whose released counts are the noisy ones.

    Args:
        origin: (k,) indices of origin regions.
        destination: (k,) indices of destination regions.
        noisy: (k,) noisy counts, in trips.
        variance: of the noise, in squared trips.
        measured: how many numbers were measured, those that are left out included.
    """
    return StageCounts(origin=origin, destination=destination, count=noisy, noisy=noisy, variance=variance, measured=measured)


def make_summed_stage(origin: Places, destination: Places, count: Integers) -> StageCounts:
    """Make a stage that is not measured but summed from a finer one; pairs with a sum of 0 are left out."""
    nonzero = count != 0
    return StageCounts(
        origin=origin[nonzero], destination=destination[nonzero], count=count[nonzero], noisy=count[nonzero], variance=np.inf, measured=0
    )


def bound_largest_noise(sigma: Floats, numbers: Floats, beta: float) -> Floats:
    """Bound the largest of several sub-Gaussian noises, for several stages at once.

    Args:
        sigma: (n,) square roots of the noises' variance parameters.
        numbers: (n,) how many noises there are.
        beta: probability with which the largest noise may exceed its bound.

    Returns:
        (n,) bounds; 0 for no noises.
    """
    return np.asarray(sigma * np.sqrt(2 * np.log(np.maximum(2 * numbers / beta, 1.0))))


def count_most_leaf_pairs(tree: PairTree) -> Floats:
    """Return (T + 1,) the largest number of leaf pairs in one pair of each stage."""
    origins, destinations = (
        [float(side.leaf_count(level).max()) for level in range(side.depth + 1)] for side in (tree.origins, tree.destinations)
    )
    return np.array([origins[a] * destinations[b] for a, b in (tree.levels(stage) for stage in range(tree.height + 1))])


@dataclass(frozen=True, kw_only=True)
class TripMechanism(Mechanism[TripCounts, Regions, TripRelease]):
    """Base of every mechanism of trips: it counts trips between regions and releases noisy trips per pair, stage by stage.

    A mechanism in full. It adds discrete Gaussian noise to every pair of leaves; larger regions are sums of noisy pairs. Empty pairs get
    noise, too, since a list of the others would reveal where trips are. It protects one trip (or one person) that is added or removed,
    as every mechanism does that does not declare the setting `neighbours`.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import pandas as pd
    >>> import dpviz as dv
    >>> from dpviz.mechanisms.run import Run
    >>> from dpviz.mechanisms.trips.base import make_measured_stage, add_coarser_stages
    >>> from dpviz.space.pair_tree import PairTree
    >>> @dataclass(frozen=True, kw_only=True)
    ... class EveryPair(dv.mechanisms.TripMechanism):
    ...     key, title, summary = "every_pair", "Every pair", "Counts every pair of leaf regions with noise."
    ...     def release(self, trip_counts, budget, entropy):
    ...         run = Run.of(self, trip_counts, budget, entropy, gaussian=True)
    ...         tree = PairTree(origins=trip_counts.regions, destinations=trip_counts.ends)
    ...         true = np.zeros([side.size(side.depth) for side in (tree.origins, tree.destinations)], np.int64)
    ...         true[trip_counts.origin, trip_counts.destination] = trip_counts.count
    ...         noisy, variance = run.measure("every pair of leaves", true.ravel(), *run.split([1.0]), tree.height)
    ...         noisy = noisy.reshape(true.shape)
    ...         pairs = np.argwhere(noisy).astype(np.int32).T
    ...         leaves = make_measured_stage(*pairs, noisy[tuple(pairs)], variance, noisy.size)
    ...         stages = add_coarser_stages(tree, leaves, tree.height)
    ...         return self.make_release(run, tree, stages, steps=("larger regions are sums",), every_pair=True)
    >>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["state", "town"])
    >>> trips = pd.DataFrame({"origin": ["a", "b", "c"], "destination": ["c", "c", "a"], "count": [900, 40, 500]})
    >>> release = EveryPair().release(dv.TripCounts.from_table(trips, regions=regions), dv.ZcdpBudget(1000), dv.Entropy.seeded(1))
    >>> release.to_frame("state")[["origin", "destination", "count"]].values.tolist()
    [['A', 'B', 940], ['B', 'A', 500]]
    """

    family: ClassVar[str] = "trips"
    takes: ClassVar[tuple[type[Any], str]] = TripCounts, "A trip mechanism takes TripCounts: see TripCounts.from_table and read_trips"
    audit_inputs: ClassVar[tuple[Added[Any], ...]] = (*TRIPS, *PEOPLE)

    def __post_init__(self) -> None:
        super().__post_init__()
        for rule in self.rules():
            if rule.name == WEIGHTS and getattr(self, WEIGHTS) and rule.when is not None and not rule.matters(self.chosen()):
                name, wanted = rule.when
                raise SettingError(f"{rule.label} need another {name}: choose {name}={wanted!r}, or leave the weights out.")

    @property
    def needs_delta(self) -> bool:
        """Whether the budget must have a delta: always, for discrete Gaussian noise and for thresholds."""
        return True

    def check_data(self, data: TripCounts) -> None:
        """Raise an error if public facts about the input rule the mechanism out; nothing is spent.

        Raises:
            InputError: not TripCounts, or m > 1 under "bounded" without the declaration that everybody has exactly m trips.
            DomainError: too many pairs.
            SettingError: settings that do not fit the regions.
            BudgetError: custom weights that do not fit the regions.
        """
        self.check_type(data)
        if self.neighbours == BOUNDED and data.contributions > 1 and not data.exactly:
            raise InputError(
                "Bounded neighbours replace m trips by m trips: with more than one trip per person, declare that everybody has"
                " exactly that many (exactly=True), or choose neighbours='add_remove'."
            )
        self.check_pairs(data.regions, data.ends)

    def check_pairs(self, origins: Regions, destinations: Regions) -> None:
        """Raise an error if these settings do not fit the hierarchies of origins and destinations, which may be one and the same."""
        self.check(origins)
        if destinations is not origins:
            self.check(destinations)

    def make_release(
        self, run: Run[TripCounts], tree: PairTree, stages: Sequence[StageCounts], *, exact_total: bool = False, **facts: Any
    ) -> TripRelease:
        """Make the release of all stages.

        Args:
            run: of this mechanism.
            tree: of pairs.
            stages: T + 1 stages, the pair of roots first.
            exact_total: whether the release publishes the exact number of trips, if it is the same for all neighbours.
            facts: further fields of `TripRelease`.
        """
        trips = run.data
        exact = f"the number of trips between the regions ({trips.total:,}), published exactly"
        same = "the number of trips between the regions: the same for all neighbours"
        public_total = (exact if exact_total else same,) if self.neighbours == BOUNDED else ()
        public_bound = ("that everybody has exactly this many trips, which the curator declares",) if trips.exactly else ()
        declared = ("The bound of trips per person is declared, not enforced.",) if trips.contributions > 1 and not trips.enforced else ()
        return TripRelease(
            tree=tree,
            stages=tuple(stages),
            **self.release_facts(run.receipt((*PUBLIC_REGIONS, *public_total, *public_bound), (*run.notes, *declared)), run.entropy),
            **facts,
        )

    def depends_on_data(self, release: TripRelease) -> bool:
        """Return whether the data decide which pairs are released."""
        return not release.every_pair

    def level_errors(self, release: TripRelease) -> list[LevelError]:
        """List the standard deviation of a pair of each level, in trips; NaN where it differs from pair to pair."""
        errors = []
        for level in range(release.depth + 1):
            stddev, of = _compute_stddev(release, level), release.tree.title(2 * level)
            errors.append(LevelError(level=level, of=of, numbers=None, stddev=stddev, interval=STDDEVS[release.noise] * stddev))
        return errors

    def error_bounds(self, release: TripRelease, beta: float) -> Floats:  # noqa: ARG002
        """Bound the errors of all pairs of each stage of a release by this mechanism, from public numbers alone.

        Args:
            release: made with these settings.
            beta: each stage's bound fails with at most this probability; above 0 and below 1.

        Returns:
            (T + 1,) bounds in trips, the pair of roots first; NaN where no bound is known.
        """
        return np.full(release.tree.height + 1, np.nan)

    def stage_variances(self, tree: PairTree, budget: Budget, contributions: int) -> Floats | None:  # noqa: ARG002
        """Compute the variance that a release with these settings would state for the counts of each stage; nothing is drawn.

        Args:
            tree: the public tree of pairs.
            budget: the budget of the release.
            contributions: the bound m on the trips of one person.

        Returns:
            (T + 1,) variances, in squared trips, as `StageCounts.variance`: infinite where a stage would not be measured. None if the
            mechanism cannot say without a run; by default, always.

        Raises:
            BudgetError: another kind of budget, or a split that does not fit the tree.
        """
        return None


def _compute_stddev(release: TripRelease, level: int) -> float:
    """Compute the standard deviation of a level's counts, in trips.

    If the level was measured, this is the standard deviation of the noise; for level 0, of the sum of all measured pairs. NaN if it
    depends on the pair.
    """
    variance = release.stages[2 * level].variance
    if np.isfinite(variance):
        return float(np.sqrt(variance))
    if level or not release.every_pair:
        return float("nan")
    return float(release.answer([ROOT], [ROOT], levels=(0, 0), spread=True)[1][0])


def stage_shares(tree: PairTree, weights: Sequence[float]) -> list[Share]:
    """List one part of the budget for each of the last stages of a tree, in proportion to their weights."""
    stages = range(tree.height + 1 - len(weights), tree.height + 1)
    return split_shares(["total" if stage == 0 else tree.title(stage) for stage in stages], weights)


def plan_variances(mechanism: TripMechanism, tree: PairTree, budget: Budget, contributions: int, shares: Sequence[float]) -> Floats:
    """Compute the variance of the noise on each stage's counts, as a `Run` would draw it; nothing is drawn.

    Args:
        mechanism: with its settings.
        tree: of pairs.
        budget: of the release.
        contributions: the bound m on the trips of one person.
        shares: of rho, for the last stages of the tree; a stage before them is exact.

    Returns:
        (T + 1,) variances, in squared trips: 0 for an exact stage, infinite for one without a share.
    """
    sensitivity = Sensitivity(contributions=contributions, neighbours=mechanism.neighbours)
    parts = split_budget(budget, mechanism, shares, sensitivity, gaussian=True).parts
    variances = [sensitivity.variance(part, gaussian=True) if part else np.inf for part in parts]
    return np.array([0.0] * (tree.height + 1 - len(variances)) + variances)
