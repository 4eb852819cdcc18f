"""The error of an average square, region or pair at every ε: what a person sees before moving the budget. Nothing is spent or released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpviz.arrays import Floats
from dpviz.errors import SettingError
from dpviz.mechanisms.base import AnyMechanism
from dpviz.privacy.budget import Budget
from dpviz.publishing.dry_run import check_level, make_budget
from dpviz.publishing.guessed_records import PublicGuess, count_no_records
from dpviz.publishing.private_data import PrivateData
from dpviz.publishing.public_guess import SEED
from dpviz.publishing.simulated_errors import LevelOutlook, Rehearsal, compare_releases, simulate_errors

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_LEAST_ERROR = 1e-9  # of an exact level, whose logarithm would be infinite


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorsOverEpsilon:
    """Errors of one level at a few ε, and between them.

    Attributes:
        epsilon: (k,) ascending.
        error: (k,) root mean square error of a part divided by the count of an average one: 0.35 for 35 %. The parts are the squares of a
            zoom level, those without records included, all regions, or the pairs that have trips or are released; an average pair is one
            with trips. NaN without any record.
        false_share: (k,) which share of the parts without records looks occupied, 0 to 1; of trips, of the released pairs (see
            `LevelOutlook`).
    """

    epsilon: Floats
    error: Floats
    false_share: Floats

    def error_at(self, epsilon: ArrayLike) -> Floats:
        """Interpolate the error, linearly between logarithms of both: noise alone is a straight line.

        Args:
            epsilon: one or more, above 0.

        Returns:
            As many errors; NaN below the smallest and above the largest ε, where nothing is known.

        >>> known = ErrorsOverEpsilon(epsilon=np.array([0.1, 1.0]), error=np.array([0.4, 0.04]), false_share=np.array([0.5, 0.1]))
        >>> known.error_at([0.2, 1, 2]).round(3).tolist()
        [0.2, 0.04, nan]
        """
        return np.exp(self._between(epsilon, np.log(np.maximum(self.error, _LEAST_ERROR))))

    def false_share_at(self, epsilon: ArrayLike) -> Floats:
        """Interpolate the share of empty parts that look occupied, linearly in the logarithm of ε; NaN where nothing is known."""
        return self._between(epsilon, self.false_share)

    def joined_to(self, epsilon: float, error: float, false_share: float) -> ErrorsOverEpsilon:
        """Return the same with what was measured in a run: at its ε, the measured numbers stand in place of the expected ones.

        Args:
            epsilon: of the run.
            error: measured, as a share of an average count; where it is NaN, nothing changes.
            false_share: measured, 0 to 1; NaN where nothing can be false, which is then left as it was expected.

        >>> known = ErrorsOverEpsilon(epsilon=np.array([0.1, 1.0]), error=np.array([0.4, 0.04]), false_share=np.array([0.5, 0.1]))
        >>> known.joined_to(0.2, 0.25, 0.4).error_at([0.1, 0.2, 1]).round(3).tolist()
        [0.4, 0.25, 0.04]
        """
        if np.isnan(error):
            return self
        false = float(self.false_share_at(epsilon)) if np.isnan(false_share) else false_share
        others = self.epsilon != epsilon
        place = int(np.searchsorted(self.epsilon[others], epsilon))

        def with_measured(values: Floats, value: float) -> Floats:
            return np.insert(values[others], place, value)

        return ErrorsOverEpsilon(
            epsilon=with_measured(self.epsilon, epsilon),
            error=with_measured(self.error, error),
            false_share=with_measured(self.false_share, false),
        )

    def _between(self, epsilon: ArrayLike, values: Floats) -> Floats:
        return np.asarray(np.interp(np.log(epsilon), np.log(self.epsilon), values, left=np.nan, right=np.nan))


def errors_over_epsilon(
    mechanism: AnyMechanism,
    data: PrivateData,
    level: int,
    *,
    guess: PublicGuess | None = None,
    public: bool = False,
    epsilons: Sequence[float] = EPSILONS,
    delta: float = 1e-8,
    gaussian: bool = False,
    seed: int = SEED,
    before_run: Callable[[], object] = int,
) -> ErrorsOverEpsilon:
    """Compute how far off an average part of a level is at several ε.

    The errors are those of `LevelOutlook`, by which `expected_errors` states them, too. Of areas they follow from the noise that a
    mechanism states, in closed form; of public data, where a biased step makes counts better than their noise, such as lean counts, those
    of levels of 30 regions or more are of one seeded release. Of points they are the noise and what partitions hide, in closed form for
    the partitions of a seeded release; where the data decide these, the mean over two to eight releases. Those of trips are measured on
    four. On samples, errors of all three were within 5 % of the mean of other runs.

    The same arguments give the same numbers. The seven ε of the path-budget tree take about seven seconds of a processor on
    `la_residents`, those of a quadtree or of areas about a second.

    Source:
        Our own: `simulate_errors`, whose tests compare it with measured errors.

    Args:
        mechanism: the mechanism with its settings.
        data: with `public`, the counts that releases are compared with. With a guess, only frame, unit and bound are used.
        level: zoom level of points, or level of regions, 0 for the whole.
        guess: how many records there may be, and how they lie; from public knowledge alone.
        public: whether the data are public, as a sample is. The errors are then those of these very data, without protection.
        epsilons: at least two, above 0; any order.
        delta: of mechanisms that need it.
        gaussian: whether the budget has this δ where its kind decides the noise.
        seed: of the noise.
        before_run: called before each release and each comparison; an exception from it ends the work.

    Raises:
        SettingError: a guess for public data, or private data without one; no such level; or fewer than two ε.
        DpvizError: settings, frame, budget and guess do not fit together.

    >>> import dpviz as dv
    >>> city = dv.load_sample("made_up_city")
    >>> errors = errors_over_epsilon(dv.RegionTree(), city, 3, public=True)
    >>> errors.error_at([0.1, 0.5]).round(2).tolist()
    [1.61, 0.32]
    """
    if public == (guess is not None):
        raise SettingError("Say public=True for data that are public, or give a guess of private ones: never both.")
    data = data if guess is None else count_no_records(mechanism, data)
    check_level(data, level)
    steps = _check_steps(epsilons)

    def look(epsilon: float) -> LevelOutlook:
        budget = make_budget(mechanism, epsilon, delta=delta, gaussian=gaussian)
        if guess is not None:
            return simulate_errors(mechanism, data, budget, guess, before_run, level=level, seed=seed).levels[0]
        return _compare_public(mechanism, data, budget, level, seed, before_run)[0]

    return _join(steps, [look(epsilon) for epsilon in steps.tolist()])


def levels_over_epsilon(
    mechanism: AnyMechanism,
    data: PrivateData,
    *,
    epsilons: Sequence[float] = EPSILONS,
    delta: float = 1e-8,
    gaussian: bool = False,
    seed: int = SEED,
    slots: tuple[str, ...] | None = None,
    before_run: Callable[[], object] = int,
) -> dict[int, ErrorsOverEpsilon]:
    """Compute how far off an average part of every level is at several ε, for data that are public, such as a sample.

    The levels share their releases, which take most of the time, so that all of them cost little more than one. Errors and arguments are
    those of `errors_over_epsilon`; of a level with more than 640 squares they may differ by chance, since the same noise is looked at in
    other squares. With `slots`, ids of categories by which areas are counted, they are the errors of the counts of these slots together.

    Returns:
        The errors by the number of the level, the whole first; of counts by category those of all categories together.

    >>> import dpviz as dv
    >>> levels = levels_over_epsilon(dv.RegionTree(), dv.load_sample("made_up_city"))
    >>> [round(float(errors.error_at(0.5)), 2) for errors in levels.values()]
    [0.0, 0.0, 0.02, 0.32]
    """
    steps = _check_steps(epsilons)
    budgets = [make_budget(mechanism, epsilon, delta=delta, gaussian=gaussian) for epsilon in steps.tolist()]
    outlooks = [_compare_public(mechanism, data, budget, None, seed, before_run, slots) for budget in budgets]
    return {levels[0].level: _join(steps, levels) for levels in zip(*outlooks, strict=True) if not levels[0].slot_level}


def _check_steps(epsilons: Sequence[float]) -> Floats:
    """Return the values of ε in ascending order, each once."""
    steps = np.unique(np.asarray(epsilons, np.float64))
    if len(steps) < 2 or not (np.isfinite(steps).all() and steps[0] > 0):
        raise SettingError("Give at least two values of ε, all of them above 0.")
    return steps


def _compare_public(
    mechanism: AnyMechanism,
    data: PrivateData,
    budget: Budget,
    level: int | None,
    seed: int,
    before_run: Callable[[], object],
    slots: tuple[str, ...] | None = None,
) -> tuple[LevelOutlook, ...]:
    """Compare releases of public data with these very data, at one level or at all of them."""
    question = Rehearsal(
        mechanism=mechanism,
        frame=data.frame,
        contributions=data.contributions,
        budget=budget,
        guess=None,
        level=level,
        seed=seed,
        slots=slots,
        before_run=before_run,
    )
    return compare_releases(question, data).levels


def _join(epsilon: Floats, outlooks: Sequence[LevelOutlook]) -> ErrorsOverEpsilon:
    """Join what is expected of one level at each ε."""
    return ErrorsOverEpsilon(
        epsilon=epsilon,
        error=np.array([each.error / each.average if each.average > 0 else np.nan for each in outlooks]),
        false_share=np.array([each.false_share for each in outlooks]),
    )
