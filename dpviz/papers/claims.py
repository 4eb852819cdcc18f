"""Claims of a paper as predicates on a figure's table, and the verdict on each: numbers per seed, intervals over the seeds, an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
import pandas as pd

from dpviz.amounts import format_decimal
from dpviz.arrays import Floats

HOLDS, FAILS, UNDECIDED = "holds", "does not hold here", "undecided"
CONFIDENCE = 0.95
_DIGITS = 3

Cases = Mapping[str, float]
"""A number for each case that a claim speaks of, by the case's name, from the rows of one seed."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper: for each case, a number that must be on one side of a line.

    Attributes:
        text: the claim in one sentence, in the paper's meaning.
        cases: takes the rows of one seed, and returns a number per case, such as the ratio of two errors for each shape of queries.
        reading: what the number of a case says, a sentence with {value} and perhaps {case}, without a full stop.
        below: whether the claim wants the numbers below the line, or else above it.
        line: what separates the two sides.
        ratio: whether the numbers are ratios: positive, and averaged as geometric means. Else they are averaged as they are.
        every: whether the claim is about every case, or else about at least one of them ("up to ...").
        reasons: why the verdict is as it is, where that is known, by verdict: `HOLDS`, `FAILS` or `UNDECIDED`.
        ours: whether the claim is not the paper's, but ours.

    >>> claim = Claim(
    ...     text="Trees have smaller errors than grids.",
    ...     cases=lambda rows: ratios(rows, "tree", ["grid"], by={"epsilon": "ε = {:g}"}, value="error"),
    ...     reading="the tree's error is {value} times that of {case}",
    ... )
    >>> rows = pd.DataFrame({"method": ["tree", "grid"] * 3, "epsilon": 1.0, "seed": [1, 1, 2, 2, 3, 3], "error": [2, 4, 2.2, 4, 1.8, 4]})
    >>> print(claim.judge(rows))
    Holds: the tree's error is 0.498 times that of grid, ε = 1 (95 % interval 0.388 to 0.639, 3 seeds).
    """

    text: str
    cases: Callable[[pd.DataFrame], Cases]
    reading: str = "the error is {value} times as large for {case}"
    below: bool = True
    line: float = 1.0
    ratio: bool = True
    every: bool = True
    reasons: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False

    @property
    def need(self) -> str:
        """What the claim needs, in words: "below 1 in every case"."""
        cases = "every case" if self.every else "at least one case"
        return f"{'below' if self.below else 'above'} {_write(self.line)} in {cases}"

    def judge(self, table: pd.DataFrame, *, exact: bool = False) -> Verdict:
        """Compute the verdict of this claim on a figure's table.

        Each case has a 95 % interval of its mean over the seeds (Student's t; of logarithms for ratios). A claim about every case holds
        if all of these intervals are on its side of the line. No correction for the number of cases is due: the claim is wrong if one
        case is, and that one case passes by chance in at most 2.5 % of all runs, however many others there are (an
        intersection-union test). It does not hold here if some case is on the other side. Now any of the k cases could stray there by
        chance, so this takes intervals at 1 - 0.05 / k (Bonferroni). For a claim about at least one case both are exchanged. Whatever is
        neither is undecided.

        Args:
            table: the figure's rows, with a column `seed`.
            exact: whether nothing in the table is random: then the numbers are their own intervals.

        Source:
            Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24 (1982), for the intersection-union test.
        """
        values = pd.DataFrame([dict(self.cases(rows)) for _, rows in table.groupby("seed", sort=False)])
        return Verdict(claim=self, cases=self._intervals(values, exact=exact), seeds=len(values), exact=exact)

    def _intervals(self, values: pd.DataFrame, *, exact: bool) -> pd.DataFrame:
        """Return a row per case of (seeds, cases) numbers: mean, usual and strict interval."""
        strict = 1 - (1 - CONFIDENCE) / len(values.columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = np.log(values.to_numpy(np.float64)) if self.ratio else values.to_numpy(np.float64)
        rows = []
        for column in numbers.T:
            ends = [column.mean()] * 5 if exact else [*interval(column), *interval(column, strict)[1:]]
            rows.append(np.exp(ends) if self.ratio else ends)
        names = ["value", "low", "high", "strict_low", "strict_high"]
        return pd.DataFrame(rows, columns=names).assign(case=list(values.columns))[["case", *names]]


def interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Compute the mean of numbers and its confidence interval by Student's t.

    Args:
        values: (n,) independent numbers.
        confidence: of the interval, 0 to 1.

    Returns:
        Mean, lower and upper end; the ends are infinite if there are fewer than two numbers, or one is not finite.

    >>> [round(end, 3) for end in interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    from scipy.special import stdtrit  # noqa: PLC0415  (slow to import)

    mean, number = float(np.mean(values)), len(values)
    if number < 2 or not np.isfinite(values).all():
        return mean, -math.inf, math.inf
    half = float(stdtrit(number - 1, (1 + confidence) / 2) * np.std(values, ddof=1) / math.sqrt(number))
    return mean, mean - half, mean + half


def ratios(
    rows: pd.DataFrame, method: str, others: Sequence[str], *, by: Mapping[str, str], value: str, series: str = "method"
) -> dict[str, float]:
    """Divide a method's values by those of each other method, for each combination of some columns.

    Args:
        rows: of one seed.
        method: whose values are divided.
        others: by whose values they are divided.
        by: for each column that tells the cases apart, how its value is written in a case's name.
        value: the column of values.
        series: the column of methods.

    Returns:
        The ratios by the names of their cases, such as "grid, ε = 1".

    >>> rows = pd.DataFrame({"method": ["tree", "grid"], "epsilon": 1.0, "error": [2.0, 4.0]})
    >>> ratios(rows, "tree", ["grid"], by={"epsilon": "ε = {:g}"}, value="error")
    {'grid, ε = 1': 0.5}
    """
    found = cell_values(rows, by=by, value=value, series=series)
    named = product(others, found[method])
    return {", ".join(filter(None, [other, case])): found[method][case] / found[other][case] for other, case in named}


def cell_values(rows: pd.DataFrame, *, by: Mapping[str, str], value: str, series: str = "method") -> dict[str, dict[str, float]]:
    """Return the values of one seed by method and by the name of their case, as `ratios` names them.

    >>> rows = pd.DataFrame({"method": ["tree", "grid"], "epsilon": 1.0, "error": [2.0, 4.0]})
    >>> cell_values(rows, by={"epsilon": "ε = {:g}"}, value="error")
    {'tree': {'ε = 1': 2.0}, 'grid': {'ε = 1': 4.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for name, number, *keys in zip(rows[series], rows[value], *(rows[column] for column in by), strict=True):
        case = ", ".join(form.format(key) for form, key in zip(by.values(), keys, strict=True))
        found.setdefault(name, {})[case] = float(number)
    return found


def step_ratios(rows: pd.DataFrame, column: str, step: str, *, by: Mapping[str, str], value: str) -> dict[str, float]:
    """Divide the value at each place of a column by that at the next larger one, for each combination of other columns.

    Args:
        rows: of one seed.
        column: of the places, numbers.
        step: how two of them are written in a case's name.
        by: for each other column that tells the cases apart, how its value is written.
        value: the column of values.

    >>> rows = pd.DataFrame({"method": ["tree", "tree"], "epsilon": [0.5, 1.0], "error": [4.0, 2.0]})
    >>> step_ratios(rows, "epsilon", "ε = {:g} against {:g}", by={"method": "{}"}, value="error")
    {'tree, ε = 0.5 against 1': 2.0}
    """
    cases: dict[str, float] = {}
    for keys, part in rows.groupby(list(by), sort=False):
        found = part.set_index(column)[value].sort_index()
        named = ", ".join(form.format(key) for form, key in zip(by.values(), keys, strict=True))
        cases |= {f"{named}, {step.format(low, high)}": float(found[low] / found[high]) for low, high in pairwise(found.index)}
    return cases


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Verdict:
    """Whether a claim holds on a table, with what decided it.

    Attributes:
        cases: one row per case: case, value (mean over the seeds), low and high (ends of its 95 % interval), strict_low and strict_high
            (ends of the interval at 1 - 0.05 / k, for k cases).
        seeds: number of seeds.
        exact: whether nothing is random.
    """

    claim: Claim
    cases: pd.DataFrame
    seeds: int
    exact: bool = False

    @property
    def answer(self) -> str:
        """The verdict: `HOLDS`, `FAILS` or `UNDECIDED`."""
        (agree, against), number = self.counts, len(self.cases)
        holds, fails = (agree == number, against > 0) if self.claim.every else (agree > 0, against == number)
        return HOLDS if holds else FAILS if fails else UNDECIDED

    @property
    def reason(self) -> str:
        """Why the verdict is as it is, where that is known; else ""."""
        return self.claim.reasons.get(self.answer, "")

    @property
    def counts(self) -> tuple[int, int]:
        """How many cases are for the claim, and how many against it; those in neither are undecided."""
        every = self.claim.every
        return int((self._distances(strict=not every)[:, 1] < 0).sum()), int((self._distances(strict=every)[:, 0] > 0).sum())

    @property
    def decisive(self) -> tuple[str, float, float, float]:
        """The case that decided, its value, and the ends of the interval that was compared with the line.

        It is the least favourable case of a claim about every case, and the most favourable one of a claim about at least one.
        """
        fails = self.answer == FAILS
        strict = fails == self.claim.every
        ends = self._distances(strict=strict)[:, 0 if fails else 1]
        row = self.cases.iloc[int(np.argmax(ends) if self.claim.every else np.argmin(ends))]
        low, high = ("strict_low", "strict_high") if strict else ("low", "high")
        return str(row["case"]), float(row["value"]), float(row[low]), float(row[high])

    @property
    def sentence(self) -> str:
        """The verdict with what was found."""
        return f"{self.answer[:1].upper()}{self.answer[1:]}: {' '.join(filter(None, [self.finding, self.others]))}"

    @property
    def finding(self) -> str:
        """The number that decided, with its interval, as a sentence that begins with a small letter."""
        case, value, low, high = self.decisive
        place, number = "least" if self.claim.every else "most", len(self.cases)
        where = f"in the {place} favourable of {number} cases, " if number > 1 else ""
        return f"{where}{self.claim.reading.format(value=_write(value), case=case)} ({self._describe_seeds(low, high)})."

    @property
    def others(self) -> str:
        """How many cases are for the claim, as a sentence; "" if there is only one."""
        agree, against = self.counts
        return f"Cases for the claim: {agree}; against it: {against}." if len(self.cases) > 1 else ""

    def _describe_seeds(self, low: float, high: float) -> str:
        if self.exact:
            return "computed, nothing is random"
        if not (math.isfinite(low) and math.isfinite(high)):
            return f"no interval from {self.seeds} seed{'s' * (self.seeds != 1)}"
        at_once = len(self.cases) > 1 and (self.answer == FAILS) == self.claim.every
        kind = f"{CONFIDENCE * 100:g} % interval{' for all cases at once' if at_once else ''}"
        return f"{kind} {_write(low)} to {_write(high)}, {self.seeds} seeds"

    def _distances(self, *, strict: bool) -> Floats:
        """Return (k, 2) ends of the cases' intervals as distances from the line; below 0 is the claim's side."""
        names = ["strict_low", "strict_high"] if strict else ["low", "high"]
        ends = self.cases[names].to_numpy(np.float64) - self.claim.line
        return ends if self.claim.below else -ends[:, ::-1]

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"Verdict({self.sentence!r})"


def _write(value: float) -> str:
    return format_decimal(value, _DIGITS)
