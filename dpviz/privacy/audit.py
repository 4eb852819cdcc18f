"""An empirical lower bound on epsilon: how well releases of two neighbouring inputs can be distinguished.

A mechanism is run many times on each of two neighbouring inputs. If it is (epsilon, delta)-DP, every event E of its output satisfies
P(E on one) <= exp(epsilon) P(E on the other) + delta. So any event whose frequencies differ by more, beyond chance, refutes the claim.
The runs are cut in three parts: events are learned on a quarter, the most promising event is chosen on another quarter, and its
frequencies are measured on the remaining half. Because the event does not depend on that half, the confidence bound is valid.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from dpviz.arrays import Floats, Integers, Mask
from dpviz.errors import BudgetError, SettingError
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy

View = Mapping[Hashable, float]
"""The content of one release: numbers by name. A missing name is information, too: it says that the release has no such partition."""


MOST_NAMES, LEAST_SEEN = 300, 0.01
_MOST_THRESHOLDS, _MOST_STUMPS, _MOST_PER_QUANTITY, _MOST_PAIRS, _STRONGLY_CORRELATED = 12, 24, 3, 200, 0.9


@dataclass(frozen=True, kw_only=True, eq=False)
class Event:
    """An event: a property that a release either has or has not.

    Attributes:
        words: a text that describes the property.
        happened: function from (n, f) numbers, one row per release and one column per name, NaN where a name is missing, to (n,)
            whether each release has the property.
    """

    words: str
    happened: Callable[[Floats], Mask]

    @property
    def opposite(self) -> Event:
        """The complement of this event."""
        return Event(words=f"not: {self.words}", happened=lambda table: ~self.happened(table))


class Stump(NamedTuple):
    """The event that a quantity is at least `least`; if `least` is None, that the release contains the quantity.

    Attributes:
        name: column of the number.
        least: the threshold, or None.
        other: column of a second number; None if the quantity is the first number alone.
        sign: with a second number, 1 for the sum and -1 for the difference.
    """

    name: int
    least: float | None
    other: int | None = None
    sign: int = -1

    def values(self, table: Floats) -> Floats:
        """(n,) the quantity in each of (n, f) releases; NaN where a number is missing."""
        return table[:, self.name] if self.other is None else table[:, self.name] + self.sign * table[:, self.other]

    def happened(self, table: Floats) -> Mask:
        """(n,) whether each release contains the quantity and it is large enough."""
        values = self.values(table)
        return ~np.isnan(values) if self.least is None else values >= self.least

    def words(self, names: Sequence[Hashable]) -> str:
        """A text that describes the event, for the report; `names` are the names of the columns."""
        quantity = _name_text(names[self.name])
        if self.other is not None:
            quantity = f"({quantity}) {'-' if self.sign < 0 else '+'} ({_name_text(names[self.other])})"
        return f"there is a {quantity}" if self.least is None else f"{quantity} >= {self.least:.6g}"


def common_names(views: Sequence[View]) -> list[Hashable]:
    """The names to learn events from: at most 300, the most frequent first.

    Names in fewer than 1 % of the releases, and names with the same value in all of them, are left out.

    Args:
        views: releases of both inputs.
    """
    occurrences = Counter(name for view in views for name in view)
    constant = {name for name, value in views[0].items() if occurrences[name] == len(views) and all(view[name] == value for view in views)}
    common = (name for name, times in occurrences.most_common() if times >= LEAST_SEEN * len(views) and name not in constant)
    return list(itertools.islice(common, MOST_NAMES))


def table_of(views: Sequence[View], names: Sequence[Hashable]) -> Floats:
    """(n, f) numbers of n releases, one column per name; NaN where a release has no such name."""
    column_of = {name: column for column, name in enumerate(names)}
    table = np.full((len(views), len(names)), np.nan)
    for row, view in zip(table, views, strict=True):
        for name, value in view.items():
            if name in column_of:
                row[column_of[name]] = value
    return table


def learn_events(one: Floats, other: Floats, names: Sequence[Hashable]) -> Iterator[Event]:
    """Candidate events that may be more frequent on one input than on the other.

    There are four kinds: thresholds of single numbers, and presence of names; thresholds of differences and sums of two correlated
    numbers, in which noise that both share cancels; thresholds of a score that combines the most informative of these; and exact
    repetition of a release that was seen on one input only.

    Args:
        one: (n, f) numbers of releases of one input.
        other: (n, f) numbers of releases of the other input.
        names: the names of the f columns.
    """
    both = np.concatenate([one, other])
    single = [stump for name in range(both.shape[1]) for stump in _threshold_stumps(Stump(name, None), both)]
    stumps = [*single, *_paired_stumps(one, other)]
    yield from (Event(words=stump.words(names), happened=stump.happened) for stump in stumps)
    yield from _score_events(one, other, stumps, names)
    yield from (_repetition_event(one, other), _repetition_event(other, one))


def _name_text(name: Hashable) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _threshold_stumps(stump: Stump, table: Floats) -> Iterator[Stump]:
    """Yield the presence of a quantity if it is sometimes missing, and thresholds at its values, or at quantiles if there are many."""
    values = stump.values(table)
    present = values[~np.isnan(values)]
    if len(present) < len(values):
        yield stump
    distinct = np.unique(present)
    if len(distinct) > _MOST_THRESHOLDS:
        distinct = np.unique(np.quantile(present, np.linspace(0, 1, _MOST_THRESHOLDS + 2), method="higher"))
    yield from (stump._replace(least=least) for least in distinct[1:].tolist())


def _paired_stumps(one: Floats, other: Floats) -> Iterator[Stump]:
    """Thresholds of differences (sums) of two numbers that are strongly positively (negatively) correlated within each input."""
    both = np.concatenate([one - _mean(one), other - _mean(other)])
    common = np.flatnonzero((~np.isnan(both)).mean(0) > 1 / 2)
    if len(common) < 2:
        return
    moves = np.nan_to_num(both[:, common])
    _, first = np.unique(moves, axis=1, return_index=True)
    first = np.sort(first[moves[:, first].std(0) > 0])
    if len(first) < 2:
        return
    correlation = np.triu(np.corrcoef(moves[:, first].T), 1)
    order = np.argsort(-np.abs(correlation), axis=None)[:_MOST_PAIRS]
    table = np.concatenate([one, other])
    for left, right in zip(*np.unravel_index(order, correlation.shape), strict=True):
        if abs(correlation[left, right]) > _STRONGLY_CORRELATED:
            pair = Stump(int(common[first[left]]), None, int(common[first[right]]), -1 if correlation[left, right] > 0 else 1)
            yield from _threshold_stumps(pair, table)


def _mean(table: Floats) -> Floats:
    present = ~np.isnan(table)
    return np.asarray(np.nansum(table, axis=0) / np.maximum(present.sum(0), 1))


def _score_events(one: Floats, other: Floats, stumps: list[Stump], names: Sequence[Hashable]) -> Iterator[Event]:
    """Thresholds of a logistic regression score over the most informative stumps, a few per quantity."""
    chosen = _most_informative(one, other, stumps)
    if len(chosen) < 2:
        return
    features = _Features(chosen, np.concatenate([one, other]))
    weights = _logistic(features(one), features(other))

    def score(table: Floats) -> Floats:
        return np.round(features(table) @ weights, 6)

    heaviest = ", ".join(chosen[index].words(names) for index in np.argsort(-np.abs(weights[: len(chosen)]))[:3])
    thresholds = np.unique(np.concatenate([score(one), score(other)]))
    if len(thresholds) > 200:
        thresholds = np.unique(np.quantile(thresholds, np.linspace(0, 1, 200), method="higher"))
    for least in thresholds[1:].tolist():
        yield Event(
            words=f"a score of {len(chosen)} features (above all {heaviest}) is {least:.4g} or more",
            happened=lambda table, least=least: score(table) >= least,  # type: ignore[misc]
        )


def _most_informative(one: Floats, other: Floats, stumps: list[Stump]) -> list[Stump]:
    frequencies = np.array([[stump.happened(table).mean() for table in (one, other)] for stump in stumps]).reshape(-1, 2)
    middle = frequencies.mean(1)
    z = np.abs(frequencies[:, 0] - frequencies[:, 1]) / np.sqrt(np.maximum(middle * (1 - middle), 1e-4) * 2 / len(one))
    chosen: list[Stump] = []
    chosen_per_quantity: Counter[tuple[int, int | None]] = Counter()
    for index in np.argsort(-z, kind="stable").tolist():
        stump = stumps[index]
        if z[index] < 2.5 or len(chosen) == _MOST_STUMPS:
            break
        if chosen_per_quantity[stump.name, stump.other] < _MOST_PER_QUANTITY:
            chosen_per_quantity[stump.name, stump.other] += 1
            chosen.append(stump)
    return chosen


class _Features:
    """Features for the regression: stumps as -1/2 or 1/2, and their quantities, standardised by a given table; 0 where missing."""

    def __init__(self, stumps: list[Stump], table: Floats) -> None:
        self.stumps = stumps
        self.numbers = list({(stump.name, stump.other): stump for stump in stumps}.values())
        values = self._values(table)
        self.centre = _mean(values)
        self.scale = np.maximum(np.sqrt(_mean((values - self.centre) ** 2)), 1e-9)

    def __call__(self, table: Floats) -> Floats:
        """(n, k) features of (n, f) releases."""
        happened = np.stack([stump.happened(table) for stump in self.stumps], axis=1) - 0.5
        return np.concatenate([happened, np.nan_to_num((self._values(table) - self.centre) / self.scale)], axis=1)

    def _values(self, table: Floats) -> Floats:
        return np.stack([stump.values(table) for stump in self.numbers], axis=1)


def _logistic(one: Floats, other: Floats) -> Floats:
    """(k,) weights of a logistic regression, with ridge penalty, that predicts from which of the two inputs a row is."""
    sides = np.concatenate([np.ones(len(one)), -np.ones(len(other))])
    table = np.concatenate([one, other])
    table = np.column_stack([table, np.ones(len(table))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sides * (table @ weights)
        return float(-scipy.special.log_expit(margin).sum() + weights @ weights / 2), weights - table.T @ (
            sides * scipy.special.expit(-margin)
        )

    return np.asarray(scipy.optimize.minimize(loss, np.zeros(table.shape[1]), jac=True, method="L-BFGS-B").x[:-1])


def _repetition_event(one: Floats, other: Floats) -> Event:
    """The event that a release equals one that was seen on the first input only. It is frequent only if randomness repeats."""
    repeated_rows = {row.tobytes() for row in one} - {row.tobytes() for row in other}
    return Event(
        words=f"the release is, number for number, one of {len(repeated_rows)} that were seen on one input only",
        happened=lambda table: np.fromiter((row.tobytes() in repeated_rows for row in table), np.bool_, len(table)),
    )


LEAST_RUNS = 100
ZCDP_DELTA = "0.01"
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """The content of one release, as the audit observes it.

    Attributes:
        numbers: the released numbers by name.
        chance: the probability of the most probable release under the declared noise; 1 if that is not known. Equal releases that
            are much more frequent than this prove that randomness repeats.

    >>> Observation(numbers={"count": 12.0}).chance
    1.0
    """

    numbers: View
    chance: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two neighbouring inputs, each as a function that runs the mechanism on it.

    Attributes:
        words: a text that says how the inputs differ.
        one: runs the mechanism on the first input with the given entropy, and returns the content of the release.
        other: the same for the second input.

    >>> def run(entropy):
    ...     return Observation(numbers={"coin": float(entropy.below(2, 1)[0])})
    >>> Neighbours(words="one record more", one=run, other=run).words
    'one record more'

    `audit` has a complete example.
    """

    words: str
    one: Callable[[Entropy], Observation]
    other: Callable[[Entropy], Observation]


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """The size and the confidence of an audit.

    Attributes:
        runs: the number of runs on each input, at least 100. Events are learned on a quarter of them, one is chosen on another
            quarter, and its frequencies are measured on the remaining half.
        confidence: probability, above 0 and below 1, with which all bounds of this audit hold together.
        tests: the number of audits whose results are read together, at least 1. By Bonferroni, each gets an equal part of the
            probability of error.
        seed: the seed of the noise, so that an audit can be repeated.

    Raises:
        SettingError: a number is out of range.

    >>> AuditPlan(runs=500).confidence
    0.95
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
    """The result of an audit.

    Attributes:
        mechanism: the name of the audited mechanism.
        epsilon: the declared epsilon; for a declared rho, the epsilon that it implies at `delta`.
        delta: the declared delta; 0.01 for a declared rho.
        lower_bound: at the given confidence, the true epsilon at `delta` is at least this; 0 if nothing was found.
        confidence: probability with which all audits that are read together hold.
        runs: the number of runs on each input of each pair of neighbours.
        tests: the number of audits that are read together.
        neighbours: the difference between the two inputs that were distinguished best, as a text.
        event: the event that distinguished them, as a text.
        repeated: whether more runs gave equal releases than fresh noise can explain.

    >>> numbers = dict(epsilon=1.0, delta=0.0, lower_bound=0.8, confidence=0.95, runs=2000, tests=1)
    >>> AuditResult(mechanism="noisy count", neighbours="one record more", event="count >= 8", **numbers).passed
    True
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
        """Whether the audit found no contradiction to the declared budget."""
        return self.lower_bound <= self.epsilon and not self.repeated

    def to_dict(self) -> dict[str, Any]:
        """All fields and `passed`, by name."""
        return {**vars(self), "passed": self.passed}


def audit_neighbours(mechanism: str, neighbours: Sequence[Neighbours], budget: Budget, plan: AuditPlan | None = None) -> AuditResult:
    """Try to distinguish releases of neighbouring inputs, and bound epsilon from below.

    For each pair, an event is learned and chosen on the first half of the runs of both inputs. Its frequencies in the second half
    give two Clopper-Pearson bounds: a lower bound p on its probability on the input where it is more frequent, and an upper bound
    q on its probability on the other input. Then epsilon >= ln((p - delta) / q).

    Guarantee: if the mechanism is (epsilon, delta)-DP for these neighbours, as declared, the bound exceeds epsilon with probability
    at most (1 - confidence) / tests. This holds whatever event was chosen, since the event does not depend on the runs in which its
    frequencies are measured. By Bonferroni, the bounds of all `tests` audits hold together with probability at least `confidence`;
    the pairs of neighbours and the two Clopper-Pearson bounds share the probability of error in the same way.

    A bound below epsilon proves nothing: other inputs, other events or rarer outcomes may reveal more. A declared rho is audited
    as the (epsilon, 0.01) that it implies. `repeated` is a false alarm with probability at most 1e-9 per input.

    Args:
        mechanism: the mechanism's name, for the result.
        neighbours: pairs of inputs, at least one. The pair with the largest bound gives the result.
        budget: the declared budget.
        plan: the number of runs and the confidence; `AuditPlan()` if None.

    Returns:
        The largest lower bound, with the pair and the event that gave it.

    Raises:
        BudgetError: `budget` is not a budget.
        SettingError: there is no pair of neighbours.

    >>> import numpy as np
    >>> from dpviz.privacy.noise import discrete_laplace
    >>> def run(count):
    ...     def release(entropy):
    ...         return Observation(numbers={"count": float(discrete_laplace(np.array([count]), PureBudget(1), entropy)[0])})
    ...
    ...     return release
    >>> pair = Neighbours(words="7 or 8 records", one=run(7), other=run(8))
    >>> result = audit_neighbours("noisy count", [pair], PureBudget(1), AuditPlan(runs=400))
    >>> result.passed, 0 < result.lower_bound <= 1
    (True, True)

    Source:
        Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy", CCS 2018: events chosen on separate
        runs, then tested. Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", NeurIPS 2020: the bound from
        Clopper-Pearson intervals. Tramèr, Terzis, Steinke, Song, Jagielski, Carlini, "Debugging differential privacy: a case
        study for privacy auditing", 2022: refuting a claimed epsilon. The events and the scores are ours.
    """
    plan = plan or AuditPlan()
    if not neighbours:
        raise SettingError("An audit needs at least one pair of neighbouring inputs.")
    epsilon, delta = declared_guarantee(budget)
    level = (1 - plan.confidence) / (2 * plan.tests * len(neighbours))
    streams = Entropy.seeded(plan.seed).spawn(len(neighbours))
    results = [_audit_pair(pair, delta, level, stream, plan.runs) for pair, stream in zip(neighbours, streams, strict=True)]
    best = max(range(len(results)), key=lambda index: results[index][0])
    return AuditResult(
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        lower_bound=results[best][0],
        confidence=plan.confidence,
        runs=plan.runs,
        tests=plan.tests,
        neighbours=neighbours[best].words,
        event=results[best][1],
        repeated=any(repeated for _, _, repeated in results),
    )


def declared_guarantee(budget: Budget) -> tuple[float, float]:
    """The epsilon and delta that a budget declares; for a rho, the epsilon that it implies at delta 0.01.

    Raises:
        BudgetError: `budget` is not a budget.
    """
    if isinstance(budget, PureBudget):
        return float(budget.epsilon), 0.0
    if isinstance(budget, ZcdpBudget):
        budget = budget.to_approx(ZCDP_DELTA)
    if not isinstance(budget, ApproxBudget):
        raise BudgetError("An audit takes a PureBudget, an ApproxBudget or a ZcdpBudget.")
    return float(budget.epsilon), float(budget.delta)


def lower_bound(happened: Integers | int, against: Integers | int, runs: int, delta: float, level: float) -> Floats:
    """The lower bound on epsilon that two observed frequencies of one event give, or (k,) bounds: ln((p - delta) / q), at least 0.

    Args:
        happened: the number of runs on one input with the event.
        against: the number of runs on the other input with the event.
        runs: the number of runs on each input.
        delta: the delta of the guarantee.
        level: probability with which either confidence bound may fail.

    Returns:
        The bound, where p is a lower confidence bound of the event's probability on the first input, and q an upper one on the other.

    Source:
        Clopper, Pearson, Biometrika 1934.
    """
    low, high = lower_limit(happened, runs, level), upper_limit(against, runs, level)
    return np.asarray(np.log(np.maximum((low - delta) / high, 1.0)))


def lower_limit(happened: Integers | int, runs: int, level: float) -> Floats:
    """The lower Clopper-Pearson limit of a probability: (k,) for (k,) numbers of runs in which the event happened.

    Args:
        happened: numbers of runs with the event, 0 to `runs`.
        runs: the number of runs.
        level: probability with which a limit may lie above the true probability.

    Source:
        Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 1934.

    >>> round(float(lower_limit(100, 100, 0.025)), 4)
    0.9638
    """
    happened = np.asarray(happened)
    return np.where(happened > 0, scipy.special.betaincinv(np.maximum(happened, 1), runs - happened + 1, level), 0.0)


def upper_limit(happened: Integers | int, runs: int, level: float) -> Floats:
    """The upper Clopper-Pearson limit of a probability, as `lower_limit`: it may lie below the true one with probability `level`.

    >>> round(float(upper_limit(0, 100, 0.025)), 4)
    0.0362
    """
    happened = np.asarray(happened)
    return np.where(happened < runs, scipy.special.betaincinv(happened + 1, np.maximum(runs - happened, 1), 1 - level), 1.0)


def _audit_pair(pair: Neighbours, delta: float, level: float, entropy: Entropy, runs: int) -> tuple[float, str, bool]:
    """Return the lower bound for one pair of neighbours, the event that gives it, and whether releases repeat."""
    streams = entropy.spawn(2 * runs)
    observations = [[run(stream) for stream in half] for run, half in ((pair.one, streams[:runs]), (pair.other, streams[runs:]))]
    views = [[observation.numbers for observation in side] for side in observations]
    quarter, half = runs // 4, runs // 2
    names = common_names([view for side in views for view in side[:quarter]])
    learn, choose, measure = (
        [table_of(side[part], names) for side in views] for part in (slice(quarter), slice(quarter, half), slice(half, runs))
    )
    event, swapped = _choose_event(choose, [*learn_events(learn[0], learn[1], names)], delta, level)
    counts = [int(event.happened(table).sum()) for table in (reversed(measure) if swapped else measure)]
    bound = float(lower_bound(counts[0], counts[1], runs - half, delta, level))
    return bound, event.words, any(map(_repeats, observations))


def _choose_event(learn: list[Floats], events: list[Event], delta: float, level: float) -> tuple[Event, bool]:
    """Choose the event, or complement of an event, with the largest bound; also return whether it is more frequent on the other input."""
    runs = len(learn[0])
    counts = np.array([[int(event.happened(table).sum()) for table in learn] for event in events]).T
    sides = (counts[0], counts[1]), (counts[1], counts[0])
    bounds = np.stack([lower_bound(*side, runs, delta, level) for a, b in sides for side in ((a, b), (runs - a, runs - b))])
    variant, index = np.unravel_index(int(bounds.argmax()), bounds.shape)
    event = events[int(index)]
    return (event.opposite if variant % 2 else event), bool(variant >= 2)


def _repeats(observations: Sequence[Observation]) -> bool:
    """Whether more runs equal the first run than the declared noise can explain."""
    first, later = observations[0], observations[1:]
    equal = sum(observation.numbers == first.numbers for observation in later)
    return bool(equal and scipy.special.bdtrc(equal - 1, len(later), min(first.chance, 1.0)) < _NEGLIGIBLE)
