"""The base of every mechanism of trips, and its helpers: measuring with noise, sums for coarser stages, and the receipt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpviz.arrays import Floats, Integers, Places
from dpviz.data.flows import Flows
from dpviz.errors import InputError, SettingError
from dpviz.mechanisms.audit_trips import PEOPLE, TRIPS, read_flow_release
from dpviz.mechanisms.base import BOUNDED, NEIGHBOURS, LevelError, Mechanism, setting
from dpviz.mechanisms.budget_noise import accounting_notes
from dpviz.privacy.audit import Neighbours, Observation
from dpviz.privacy.budget import Budget, ZcdpBudget
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.privacy.exact_accounting import find_gaussian_rho
from dpviz.privacy.noise import discrete_gaussian, gaussian_variance
from dpviz.privacy.receipt import Receipt, Step
from dpviz.release.flow_release import INTERVAL_STDDEVS, FlowRelease, StageCounts, sum_pairs
from dpviz.space.pair_tree import SIDES, PairTree
from dpviz.space.regions import ROOT, Regions

WEIGHTS = "weights"
"""The name of the setting that holds custom weights."""


def neighbours_setting() -> Any:
    """Declare the setting `neighbours` of a mechanism whose bounded form publishes the exact total."""
    return setting(
        BOUNDED,
        "Neighbours",
        choices=NEIGHBOURS,
        help="Which data must look alike. If one trip (or person) is replaced, the total is published exactly; else it is protected.",
    )


def first_side_setting() -> Any:
    """Declare the setting `tree`: the side of a pair that is refined first."""
    return setting(
        "destination", "Refine first", choices=SIDES, help="Which side of a pair becomes finer first, from one level to the next."
    )


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
class FlowMechanism(Mechanism[Flows, Regions, FlowRelease]):
    """Base of every mechanism of trips: it counts trips between regions and releases noisy trips per pair, stage by stage.

    A mechanism in full. It adds discrete Gaussian noise to every pair of leaves; larger regions are sums of noisy pairs. Empty pairs get
    noise, too, since a list of the others would reveal where trips are. It protects one trip (or one person) that is added or removed,
    as every mechanism does that does not declare the setting `neighbours`.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import pandas as pd
    >>> import dpviz as dv
    >>> from dpviz.mechanisms.noisy_flows import NoisyFlows, make_measured_stage, add_coarser_stages
    >>> from dpviz.privacy.noise import gaussian_variance
    >>> from dpviz.space.pair_tree import PairTree
    >>> @dataclass(frozen=True, kw_only=True)
    ... class EveryPair(dv.FlowMechanism):
    ...     key, title, summary = "every_pair", "Every pair", "Counts every pair of leaf regions with noise."
    ...     def release(self, flows, budget, entropy):
    ...         self.check_data(flows)
    ...         counter = NoisyFlows(flows=flows, entropy=entropy, neighbours=self.neighbours)
    ...         rho, conversion = counter.convert(budget, self.title, "tight", [1.0])
    ...         tree = PairTree(origins=flows.regions, destinations=flows.ends)
    ...         true = np.zeros([side.size(side.depth) for side in (tree.origins, tree.destinations)], np.int64)
    ...         true[flows.origin, flows.destination] = flows.count
    ...         noisy = counter.measure("every pair of leaves", true.ravel(), rho.rho, tree.height).reshape(true.shape)
    ...         pairs, variance = np.argwhere(noisy).astype(np.int32).T, gaussian_variance(counter.variance(rho.rho))
    ...         stages = add_coarser_stages(tree, make_measured_stage(*pairs, noisy[tuple(pairs)], variance, noisy.size), tree.height)
    ...         receipt = counter.receipt(budget, converted=rho, conversion=conversion)
    ...         facts = {"mechanism": self.key, "settings": self.chosen(), "steps": ("larger regions are sums",), "every_pair": True}
    ...         return counter.make_release(tree, stages, receipt, **facts)
    >>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
    >>> regions = dv.Regions.from_table(table, levels=["state", "town"])
    >>> trips = pd.DataFrame({"origin": ["a", "b", "c"], "destination": ["c", "c", "a"], "count": [900, 40, 500]})
    >>> release = EveryPair().release(dv.Flows.from_table(trips, regions=regions), dv.ZcdpBudget(1000), dv.Entropy.seeded(1))
    >>> release.level("state")[["origin", "destination", "count"]].values.tolist()
    [['A', 'B', 940], ['B', 'A', 500]]
    """

    family: ClassVar[str] = "trips"

    def __post_init__(self) -> None:
        super().__post_init__()
        for rule in self.rules():
            if rule.name == WEIGHTS and getattr(self, WEIGHTS) and rule.when is not None and not rule.matters(self.chosen()):
                name, wanted = rule.when
                raise SettingError(f"{rule.label} need another {name}: choose {name}={wanted!r}, or leave the weights out.")

    @property
    def conversion(self) -> str:
        """Conversion from (epsilon, delta) to rho, for accounts that are kept in rho. The exact one holds for one release alone."""
        return "simple" if getattr(self, "accounting", None) == "paper" else "tight"

    @property
    def needs_delta(self) -> bool:
        """Whether the budget must have a delta: always, for discrete Gaussian noise and for thresholds."""
        return True

    def check_data(self, data: Flows) -> None:
        """Raise an error if public facts about the input rule the mechanism out; nothing is spent.

        Raises:
            InputError: not Flows, or m > 1 under "bounded" without the declaration that everybody has exactly m trips.
            DomainError: too many pairs.
            SettingError: settings that do not fit the regions.
            BudgetError: custom weights that do not fit the regions.
        """
        if not isinstance(data, Flows):
            raise InputError("A trip mechanism takes Flows: see Flows.from_table and read_flows.")
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

    def depends_on_data(self, release: FlowRelease) -> bool:
        """Return whether the data decide which pairs are released."""
        return not release.every_pair

    def level_errors(self, release: FlowRelease) -> list[LevelError]:
        """List the standard deviation of a pair of each level, in trips; NaN where it differs from pair to pair."""
        errors = []
        for level in range(release.depth + 1):
            stddev, of = _compute_stddev(release, level), release.tree.title(2 * level)
            errors.append(LevelError(level=level, of=of, numbers=None, stddev=stddev, interval=INTERVAL_STDDEVS * stddev))
        return errors

    def error_bounds(self, release: FlowRelease, beta: float) -> Floats:  # noqa: ARG002
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

    def audit_pairs(self, budget: Budget) -> list[Neighbours]:
        """List pairs of neighbours with runs of the mechanism: one trip added or moved, and several trips of one person if allowed."""

        def run(flows: Flows) -> Callable[[Entropy], Observation]:
            return lambda entropy: read_flow_release(self.release(flows, budget, entropy))

        inputs = [(pair.words, pair.inputs(moved=self.neighbours == BOUNDED)) for pair in (*TRIPS, *PEOPLE)]
        return [Neighbours(words=words, one=run(one), other=run(other)) for words, (one, other) in inputs if self._accepts(one)]

    def _accepts(self, flows: Flows) -> bool:
        """Return whether the mechanism accepts the trips, which may have several trips per person."""
        try:
            self.check_data(flows)
        except InputError:
            if flows.contributions == 1:
                raise
            return False
        return True


def _compute_stddev(release: FlowRelease, level: int) -> float:
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


def squared_sensitivity(contributions: int, neighbours: str) -> int:
    """Return the largest sum of squared changes of a stage's counts by one person: 2 m**2 (bounded), m**2 (add/remove)."""
    return (2 if neighbours == BOUNDED else 1) * contributions**2


def plan_variances(mechanism: Any, tree: PairTree, budget: Budget, contributions: int, shares: Sequence[float]) -> Floats:
    """Compute the variance of the noise on each stage's counts, as `NoisyFlows` would draw it; nothing is drawn.

    Args:
        mechanism: its title and its settings `neighbours` and `accounting` are used.
        tree: of pairs.
        budget: of the release.
        contributions: the bound m on the trips of one person.
        shares: of rho, for the last stages of the tree; a stage before them is exact.

    Returns:
        (T + 1,) variances, in squared trips: 0 for an exact stage, infinite for one without a share.
    """
    squared = squared_sensitivity(contributions, mechanism.neighbours)
    exact = squared if contributions == 1 else None
    rho = find_gaussian_rho(budget, mechanism.title, mechanism.accounting, shares, exact)[0]
    variances = [gaussian_variance(squared / (2 * part)) if part else np.inf for part in rho.split(shares)]
    return np.array([0.0] * (tree.height + 1 - len(variances)) + variances)


@dataclass(frozen=True, kw_only=True)
class NoisyFlows:
    """One run of a mechanism on private trips: adds noise to counts, and collects the steps for the receipt.

    Attributes:
        flows: the private input; its contribution bound scales every sensitivity.
        entropy: the stream from which noise is drawn.
        neighbours: "bounded" if one unit's m trips are replaced by m others, "add_remove" if they are added or removed.
        steps: the steps spent so far, for the receipt.
        notes: what the receipt notes, such as another accounting than the chosen one.

    Raises:
        SettingError: `entropy` is not an `Entropy`.
    """

    flows: Flows
    entropy: Entropy
    neighbours: str
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        require_entropy(self.entropy)

    def convert(self, budget: Budget, mechanism: str, accounting: str, shares: Sequence[float]) -> tuple[ZcdpBudget, str | None]:
        """Find the rho that stages with these weights may spend, and the conversion by which it was found: see `find_gaussian_rho`.

        If exact accounting was chosen and another conversion was used, a note for the receipt says so.
        """
        most = self.flows.contributions
        rho, conversion = find_gaussian_rho(budget, mechanism, accounting, shares, self.squared_sensitivity if most == 1 else None)
        self.notes.extend(accounting_notes(accounting, conversion, most))
        return rho, conversion

    @property
    def squared_sensitivity(self) -> int:
        """Largest sum of squared changes of a stage's counts: 2 m**2 (bounded), m**2 (add/remove).

        The m trips of one person may all lie in one node. The paper's 2 m and m hold only for pairs of leaves and m distinct trips,
        since distinct trips may share nodes above the leaves.
        """
        return squared_sensitivity(self.flows.contributions, self.neighbours)

    def measure(self, purpose: str, true: Integers, rho: Fraction, stage: int) -> Integers:
        """Add discrete Gaussian noise to the counts of disjoint nodes of a stage, and record it for the receipt.

        Args:
            purpose: what is measured, for the receipt.
            true: (k,) true counts, in trips. PRIVATE.
            rho: the budget of the stage.
            stage: its number, 0 to T.

        Returns:
            (k,) noisy counts.
        """
        self.record(purpose, rho, stage, len(true))
        return discrete_gaussian(true, ZcdpBudget(rho), self.entropy, self.squared_sensitivity)

    def record(self, purpose: str, rho: Fraction, stage: int, counts: int) -> None:
        """Record a measurement with Gaussian noise for the receipt.

        Args:
            purpose: what is measured.
            rho: its budget.
            stage: 0 to T.
            counts: how many numbers are measured.
        """
        self.steps.append(
            Step(
                purpose=purpose,
                amount=rho,
                sensitivity=Fraction(self.squared_sensitivity),
                noise="discrete Gaussian",
                scale=self.variance(rho),
                level=stage,
                counts=counts,
            )
        )

    def variance(self, rho: Fraction) -> Fraction:
        """Return the parameter sigma squared of the discrete Gaussian noise for a budget of rho, in squared trips."""
        return self.squared_sensitivity / (2 * rho)

    def receipt(self, total: Budget, *, converted: ZcdpBudget | None, conversion: str | None, exact_total: bool = False) -> Receipt:
        """Make the receipt of all steps so far; `exact_total` says whether the release publishes the exact number of trips."""
        flows, bounded = self.flows, self.neighbours == BOUNDED
        declared_only = flows.contributions > 1 and not flows.enforced
        exact = f"the number of trips between the regions ({flows.total:,}), published exactly"
        same = "the number of trips between the regions: the same for all neighbours"
        public_total = (exact if exact_total else same,) if bounded else ()
        public_bound = ("that everybody has exactly this many trips, which the curator declares",) if flows.exactly else ()
        return Receipt(
            total=total,
            steps=tuple(self.steps),
            unit=flows.unit,
            neighbours="replace one" if bounded else "add or remove one",
            contributions=flows.contributions,
            row_stable=flows.row_stable,
            unit_declared=flows.unit_declared,
            unprotected=("the regions and their levels", "the mechanism and its settings", *public_total, *public_bound),
            notes=(*self.notes, *(["The bound of trips per person is declared, not enforced."] if declared_only else [])),
            converted=converted if converted is not total else None,
            conversion=conversion if converted is not None and converted is not total else None,
        )

    def make_release(self, tree: PairTree, stages: list[StageCounts], receipt: Receipt, **facts: Any) -> FlowRelease:
        """Make the release from all of its stages; `facts` are further fields of `FlowRelease`."""
        return FlowRelease(tree=tree, stages=tuple(stages), receipt=receipt, simulation=self.entropy.simulation, **facts)
