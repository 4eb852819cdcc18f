"""An empirical lower bound on epsilon: how well releases of two neighbouring inputs can be told apart."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpviz.arrays import Floats, Mask
from dpviz.errors import BudgetError, SettingError
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy

View = Mapping[Hashable, float]
"""What one release shows: numbers by name. A name that is missing shows something, too: that there is no such partition."""


MOST_NAMES, LEAST_SEEN = 300, 0.01
_CUTS, _STUMPS, _PER_NAME, _PAIRS, _ALIKE = 12, 24, 3, 200, 0.9


@dataclass(frozen=True, kw_only=True, eq=False)
class Event:
    """Something that a release either shows or not.

    Attributes:
        words: what it is.
        happened: from (n, f) numbers by name, NaN where a name is missing, to (n,) whether it did.
    """

    words: str
    happened: Callable[[Floats], Mask]

    @property
    def opposite(self) -> Event:
        """That it did not happen."""
        return Event(words=f"not: {self.words}", happened=lambda table: ~self.happened(table))


class Stump(NamedTuple):
    """One number, or the difference or sum of two, is at least `least`; merely there if `least` is None."""

    name: int
    least: float | None
    other: int | None = None
    sign: int = -1

    def values(self, table: Floats) -> Floats:
        """(n,) the number that is looked at."""
        return table[:, self.name] if self.other is None else table[:, self.name] + self.sign * table[:, self.other]

    def happened(self, table: Floats) -> Mask:
        """(n,) whether it is there, and large enough."""
        values = self.values(table)
        return ~np.isnan(values) if self.least is None else values >= self.least

    def words(self, names: Sequence[Hashable]) -> str:
        """It, in words."""
        what = _named(names[self.name])
        if self.other is not None:
            what = f"({what}) {'-' if self.sign < 0 else '+'} ({_named(names[self.other])})"
        return f"there is a {what}" if self.least is None else f"{what} >= {self.least:.6g}"


def common_names(views: Sequence[View]) -> list[Hashable]:
    """Names that are neither too rare to learn from nor the same everywhere, the most frequent first; at most 300."""
    seen = Counter(name for view in views for name in view)
    same = {name for name, value in views[0].items() if seen[name] == len(views) and all(view[name] == value for view in views)}
    common = (name for name, times in seen.most_common() if times >= LEAST_SEEN * len(views) and name not in same)
    return list(itertools.islice(common, MOST_NAMES))


def table_of(views: Sequence[View], names: Sequence[Hashable]) -> Floats:
    """(n, f) numbers by name, NaN where a name is missing."""
    place = {name: column for column, name in enumerate(names)}
    table = np.full((len(views), len(names)), np.nan)
    for row, view in zip(table, views, strict=True):
        for name, value in view.items():
            if name in place:
                row[place[name]] = value
    return table


def learned_events(one: Floats, other: Floats, names: Sequence[Hashable]) -> Iterator[Event]:
    """Events that may tell (n, f) numbers of one input from those of the other.

    Single numbers and names; differences and sums of two that move together, in which a shared draw cancels; a learned score
    over the most telling of them, cut anywhere; and whole releases that come again.
    """
    stumps = [*_stumps(one, other), *_pairs(one, other)]
    yield from (Event(words=stump.words(names), happened=stump.happened) for stump in stumps)
    yield from _scores(one, other, stumps, names)
    yield from (_repeated(one, other), _repeated(other, one))


def _named(name: Hashable) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _stumps(one: Floats, other: Floats) -> list[Stump]:
    both = np.concatenate([one, other])
    return [stump for name in range(both.shape[1]) for stump in _cuts(Stump(name, None), both)]


def _cuts(stump: Stump, table: Floats) -> Iterator[Stump]:
    """The stump itself if it is not always there, and cuts at all values, or at quantiles of many."""
    values = stump.values(table)
    there = values[~np.isnan(values)]
    if len(there) < len(values):
        yield stump
    distinct = np.unique(there)
    if len(distinct) > _CUTS:
        distinct = np.unique(np.quantile(there, np.linspace(0, 1, _CUTS + 2), method="higher"))
    yield from (stump._replace(least=least) for least in distinct[1:].tolist())


def _pairs(one: Floats, other: Floats) -> Iterator[Stump]:
    """Cuts of differences (or sums) of two numbers that move together (or against each other) within each input."""
    both = np.concatenate([one - _mean(one), other - _mean(other)])
    common = np.flatnonzero((~np.isnan(both)).mean(0) > 1 / 2)
    if len(common) < 2:
        return
    moves = np.nan_to_num(both[:, common])
    _, first = np.unique(moves, axis=1, return_index=True)
    first = np.sort(first[moves[:, first].std(0) > 0])
    if len(first) < 2:
        return
    alike = np.triu(np.corrcoef(moves[:, first].T), 1)
    order = np.argsort(-np.abs(alike), axis=None)[:_PAIRS]
    table = np.concatenate([one, other])
    for left, right in zip(*np.unravel_index(order, alike.shape), strict=True):
        if abs(alike[left, right]) > _ALIKE:
            pair = Stump(int(common[first[left]]), None, int(common[first[right]]), -1 if alike[left, right] > 0 else 1)
            yield from _cuts(pair, table)


def _mean(table: Floats) -> Floats:
    there = ~np.isnan(table)
    return np.asarray(np.nansum(table, axis=0) / np.maximum(there.sum(0), 1))


def _scores(one: Floats, other: Floats, stumps: list[Stump], names: Sequence[Hashable]) -> Iterator[Event]:
    """Cuts of a logistic score over the stumps that tell most, a few per number."""
    chosen = _telling(one, other, stumps)
    if len(chosen) < 2:
        return
    signs = _Signs(chosen, np.concatenate([one, other]))
    weights = _logistic(signs(one), signs(other))

    def score(table: Floats) -> Floats:
        return np.round(signs(table) @ weights, 6)

    heaviest = ", ".join(chosen[place].words(names) for place in np.argsort(-np.abs(weights[: len(chosen)]))[:3])
    cuts = np.unique(np.concatenate([score(one), score(other)]))
    if len(cuts) > 200:
        cuts = np.unique(np.quantile(cuts, np.linspace(0, 1, 200), method="higher"))
    for least in cuts[1:].tolist():
        yield Event(
            words=f"a score of {len(chosen)} signs (first of all {heaviest}) is {least:.4g} or more",
            happened=lambda table, least=least: score(table) >= least,  # type: ignore[misc]
        )


def _telling(one: Floats, other: Floats, stumps: list[Stump]) -> list[Stump]:
    shares = np.array([[stump.happened(table).mean() for table in (one, other)] for stump in stumps]).reshape(-1, 2)
    middle = shares.mean(1)
    z = np.abs(shares[:, 0] - shares[:, 1]) / np.sqrt(np.maximum(middle * (1 - middle), 1e-4) * 2 / len(one))
    chosen: list[Stump] = []
    used: Counter[tuple[int, int | None]] = Counter()
    for place in np.argsort(-z, kind="stable").tolist():
        stump = stumps[place]
        if z[place] < 2.5 or len(chosen) == _STUMPS:
            break
        if used[stump.name, stump.other] < _PER_NAME:
            used[stump.name, stump.other] += 1
            chosen.append(stump)
    return chosen


class _Signs:
    """Stumps as 0 and 1, and the numbers that they look at, centred and scaled as in a table; 0 where they are missing."""

    def __init__(self, stumps: list[Stump], table: Floats) -> None:
        self.stumps = stumps
        self.numbers = list({(stump.name, stump.other): stump for stump in stumps}.values())
        values = self._values(table)
        self.centre = _mean(values)
        self.scale = np.maximum(np.sqrt(_mean((values - self.centre) ** 2)), 1e-9)

    def __call__(self, table: Floats) -> Floats:
        """(n, k)."""
        happened = np.stack([stump.happened(table) for stump in self.stumps], axis=1) - 0.5
        return np.concatenate([happened, np.nan_to_num((self._values(table) - self.centre) / self.scale)], axis=1)

    def _values(self, table: Floats) -> Floats:
        return np.stack([stump.values(table) for stump in self.numbers], axis=1)


def _logistic(one: Floats, other: Floats) -> Floats:
    """(k,) weights of a ridge logistic regression that tells the rows of one from those of the other."""
    signs = np.concatenate([np.ones(len(one)), -np.ones(len(other))])
    table = np.concatenate([one, other])
    table = np.column_stack([table, np.ones(len(table))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = signs * (table @ weights)
        return float(-scipy.special.log_expit(margin).sum() + weights @ weights / 2), weights - table.T @ (
            signs * scipy.special.expit(-margin)
        )

    return np.asarray(scipy.optimize.minimize(loss, np.zeros(table.shape[1]), jac=True, method="L-BFGS-B").x[:-1])


def _repeated(one: Floats, other: Floats) -> Event:
    """Whole releases that were seen on one input and never on the other: they come again only if randomness does."""
    known = {row.tobytes() for row in one} - {row.tobytes() for row in other}
    return Event(
        words=f"the release is, number for number, one of {len(known)} that were seen on one input only",
        happened=lambda table: np.fromiter((row.tobytes() in known for row in table), np.bool_, len(table)),
    )


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
    return bound, event.words, any(map(_repeats, sights))


def _chosen(learn: list[Floats], events: list[Event], delta: float, level: float) -> tuple[Event, bool]:
    """The event that would give the largest bound on these runs, and whether it is likelier on the other input."""
    runs = len(learn[0])
    counts = np.array([[int(event.happened(table).sum()) for table in learn] for event in events]).T
    sides = (counts[0], counts[1]), (counts[1], counts[0])
    bounds = np.stack([_bounds(*side, runs, delta, level) for a, b in sides for side in ((a, b), (runs - a, runs - b))])
    way, place = np.unravel_index(int(bounds.argmax()), bounds.shape)
    event = events[int(place)]
    return (event.opposite if way % 2 else event), bool(way >= 2)


def _repeats(sights: Sequence[Sight]) -> bool:
    """Whether more runs equal the first one than its chance under the declared noise can explain."""
    first, rest = sights[0], sights[1:]
    again = sum(sight.numbers == first.numbers for sight in rest)
    return bool(again and scipy.special.bdtrc(again - 1, len(rest), min(first.chance, 1.0)) < _NEVER)
