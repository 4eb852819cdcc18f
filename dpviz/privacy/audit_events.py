"""What an attacker learns to look at: events that tell two neighbouring inputs apart, chosen from runs on both."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

View = Mapping[Hashable, float]
"""What one release shows: numbers by name. A name that is missing shows something, too: that there is no such partition."""

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

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
