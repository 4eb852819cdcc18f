"""An empirical lower bound on epsilon: how well releases of two neighbouring inputs can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpviz.errors import BudgetError, SettingError
from dpviz.privacy.audit_events import Event, Floats, View, common_names, learned_events, table_of
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy

LEAST_RUNS = 100
ZCDP_DELTA = "0.01"
_NEVER = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Sight:
    """What one release shows.

    Attributes:
        numbers: by name.
        chance: the largest that any one release has under the declared noise; 1 where nothing is declared.
    """

    numbers: View
    chance: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two inputs that the claim must protect against each other, each with the mechanism run on it.

    Attributes:
        words: how the inputs differ.
        one: a run on one input with fresh entropy: what the release shows.
        other: the same on the other.
    """

    words: str
    one: Callable[[Entropy], Sight]
    other: Callable[[Entropy], Sight]


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """How hard an audit looks.

    Attributes:
        runs: on each input, at least 100; events are learnt on a quarter of them, one is chosen on another, and judged on the rest.
        confidence: of all bounds that are found together.
        tests: how many audits are read together; each gets its part of what may go wrong.
        seed: of the noise, so that an audit can be repeated.

    Raises:
        SettingError: a number out of its range.
    """

    runs: int = 2000
    confidence: float = 0.95
    tests: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.runs, bool) or not isinstance(self.runs, int) or self.runs < LEAST_RUNS:
            raise SettingError(f"Runs must be a whole number, at least {LEAST_RUNS}.")
        if isinstance(self.tests, bool) or not isinstance(self.tests, int) or self.tests < 1:
            raise SettingError("The number of tests must be a whole number, at least 1.")
        if not 0 < self.confidence < 1:
            raise SettingError("The confidence must lie between 0 and 1.")


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found.

    Attributes:
        mechanism: what was audited.
        epsilon: declared.
        delta: declared, or that at which a declared rho was read.
        lower_bound: epsilon is at least this for the given delta, or the audit was unlucky; 0 if nothing was found.
        confidence: with which all audits that were read together hold.
        runs: on each input of each pair of neighbours.
        tests: how many audits were read together.
        neighbours: the inputs that were told apart best.
        event: what told them apart.
        repeated: runs came out equal that fresh noise would not have made equal.
    """

    mechanism: str
    epsilon: float
    delta: float
    lower_bound: float
    confidence: float
    runs: int
    tests: int
    neighbours: str
    event: str
    repeated: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing was found that contradicts the declared budget."""
        return self.lower_bound <= self.epsilon and not self.repeated

    def to_dict(self) -> dict[str, Any]:
        """Every field and `passed`, as plain values."""
        return {**vars(self), "passed": self.passed}


def audit(mechanism: str, neighbours: Sequence[Neighbours], budget: Budget, plan: AuditPlan | None = None) -> AuditResult:
    """Tell neighbouring inputs apart by what is released, and bound epsilon from below.

    On each pair, an event is learnt and chosen on the first half of the runs of both inputs, and its frequencies on the second half
    give a lower Clopper-Pearson bound p on the chance of the likelier side and an upper one q on the other:
    epsilon >= ln((p - delta) / q).

    Guarantee: if the mechanism has the declared (epsilon, delta) for these neighbours, the bound exceeds epsilon with probability
    at most (1 - confidence) / tests, whatever event was chosen, as the event does not depend on the runs that judge it. Of
    `tests` audits, all bounds hold with probability `confidence` at least (Bonferroni; pairs of neighbours and both
    Clopper-Pearson bounds share the same way). A bound below epsilon proves nothing: other inputs, events or rare outcomes may tell
    more. A rho is read as the (epsilon, 0.01) that it implies. `repeated` is wrong with a chance of 1e-9 per input at most.

    Args:
        mechanism: its name, for the result.
        neighbours: pairs of inputs; the best one counts.
        budget: what is declared.
        plan: how many runs, and with which confidence.

    Raises:
        BudgetError: not a budget.
        SettingError: no neighbours.

    Source:
        Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy", CCS 2018: events chosen on separate
        runs, then tested. Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", NeurIPS 2020: the bound from
        Clopper-Pearson intervals. Tramèr, Terzis, Steinke, Song, Jagielski, Carlini, "Debugging differential privacy: a case
        study for privacy auditing", 2022: refuting a claimed epsilon. The events and the scores are ours.
    """
    plan = plan or AuditPlan()
    if not neighbours:
        raise SettingError("An audit needs at least one pair of neighbouring inputs.")
    epsilon, delta = declared(budget)
    level = (1 - plan.confidence) / (2 * plan.tests * len(neighbours))
    streams = Entropy.seeded(plan.seed).spawn(len(neighbours))
    found = [_told_apart(pair, delta, level, stream, plan.runs) for pair, stream in zip(neighbours, streams, strict=True)]
    best = max(range(len(found)), key=lambda place: found[place][0])
    return AuditResult(
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        lower_bound=found[best][0],
        confidence=plan.confidence,
        runs=plan.runs,
        tests=plan.tests,
        neighbours=neighbours[best].words,
        event=found[best][1],
        repeated=any(repeated for _, _, repeated in found),
    )


def declared(budget: Budget) -> tuple[float, float]:
    """The epsilon and delta that a budget declares, a rho at delta 0.01.

    Raises:
        BudgetError: not a budget.
    """
    if isinstance(budget, PureBudget):
        return float(budget.epsilon), 0.0
    if isinstance(budget, ZcdpBudget):
        budget = budget.to_approx(ZCDP_DELTA)
    if not isinstance(budget, ApproxBudget):
        raise BudgetError("An audit takes a PureBudget, an ApproxBudget or a ZcdpBudget.")
    return float(budget.epsilon), float(budget.delta)


def lower_bound(happened: int, against: int, runs: int, delta: float, level: float) -> float:
    """Ln((p - delta) / q), at least 0, for a lower bound p of one frequency and an upper bound q of another, each at `level`."""
    return float(_bounds(np.array([happened]), np.array([against]), runs, delta, level)[0])


def _bounds(happened: NDArray[np.int64], against: NDArray[np.int64], runs: int, delta: float, level: float) -> Floats:
    """(k,) the same of (k,) counts among as many runs each. Source: Clopper, Pearson, Biometrika 1934."""
    low = np.where(happened > 0, scipy.special.betaincinv(np.maximum(happened, 1), runs - happened + 1, level), 0.0)
    high = np.where(against < runs, scipy.special.betaincinv(against + 1, np.maximum(runs - against, 1), 1 - level), 1.0)
    return np.log(np.maximum((low - delta) / high, 1.0))


def _told_apart(pair: Neighbours, delta: float, level: float, entropy: Entropy, runs: int) -> tuple[float, str, bool]:
    """The bound, the event, and whether runs repeat."""
    streams = entropy.spawn(2 * runs)
    sights = [[run(stream) for stream in half] for run, half in ((pair.one, streams[:runs]), (pair.other, streams[runs:]))]
    views = [[sight.numbers for sight in side] for side in sights]
    quarter, half = runs // 4, runs // 2
    names = common_names([view for side in views for view in side[:quarter]])
    learn, choose, judge = (
        [table_of(side[part], names) for side in views] for part in (slice(quarter), slice(quarter, half), slice(half, runs))
    )
    event, turned = _chosen(choose, [*learned_events(learn[0], learn[1], names)], delta, level)
    counts = [int(event.happened(table).sum()) for table in (reversed(judge) if turned else judge)]
    bound = lower_bound(counts[0], counts[1], runs - half, delta, level)
    return bound, event.words, any(map(_repeated, sights))


def _chosen(learn: list[Floats], events: list[Event], delta: float, level: float) -> tuple[Event, bool]:
    """The event that would give the largest bound on these runs, and whether it is likelier on the other input."""
    runs = len(learn[0])
    counts = np.array([[int(event.happened(table).sum()) for table in learn] for event in events]).T
    sides = (counts[0], counts[1]), (counts[1], counts[0])
    bounds = np.stack([_bounds(*side, runs, delta, level) for a, b in sides for side in ((a, b), (runs - a, runs - b))])
    way, place = np.unravel_index(int(bounds.argmax()), bounds.shape)
    event = events[int(place)]
    return (event.opposite if way % 2 else event), bool(way >= 2)


def _repeated(sights: Sequence[Sight]) -> bool:
    """Whether more runs equal the first one than its chance under the declared noise can explain."""
    first, rest = sights[0], sights[1:]
    again = sum(sight.numbers == first.numbers for sight in rest)
    return bool(again and scipy.special.bdtrc(again - 1, len(rest), min(first.chance, 1.0)) < _NEVER)
