"""Replay: what a run drew is forced upon a run on a neighbour, from which it may then differ in nothing.

Every noisy number and every choice is written down where `dpviz.privacy` draws it, whatever mechanism asks and by whatever name it knows
the function. The second run gets the answers of the first one. So each field of its release that is not the same to the last bit was read
from the data, and the price of the release is that of its draws: of Laplace noise the sum of |difference of the true numbers| / scale, of
Gaussian noise the sum of squared differences / (2 variance), of choices the largest logarithm of a ratio of their chances. Random bits that
are drawn anywhere else are refused.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from inspect import isfunction, signature
from typing import Any

import numpy as np

from dpviz.privacy import medians, noise, sampling, selection, smooth
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.exact_accounting import certified_delta
from dpviz.privacy.node_values import NodeValues
from tests.laws import by_integral
from tests.nodes import exponential_logs, normed
from tests.release_cases import assert_same

Loss = Fraction | float
"""An exact loss, or one of logarithms."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draw:
    """What was asked for: `stated` may depend on what was released before, and on nothing else."""

    stated: tuple = ()

    def gain(self, other: "Draw") -> Loss | None:
        """Largest loss of any answer, whichever way round; None if it has no bound on its own."""
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Noise(Draw):
    """Counts that were measured."""

    true: np.ndarray
    scale: Fraction
    gaussian: bool = False

    def gain(self, other: "Noise") -> Fraction:
        """Of Gaussian noise the loss is a rho."""
        assert (self.scale, self.gaussian) == (other.scale, other.gaussian)
        if self.gaussian:
            return int((self.moved(other) ** 2).sum()) / (2 * self.scale)
        return int(self.moved(other).sum()) / self.scale

    def moved(self, other: "Noise") -> np.ndarray:
        """(n,) absolute changes of the true counts."""
        return np.abs(self.true - other.true)


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Draw):
    """Choices among candidates, each by its errors."""

    errors: list[list[int]]
    rate: Fraction
    law: str

    def gain(self, other: "Choice") -> Loss:
        assert (self.rate, self.law, [*map(len, self.errors)]) == (other.rate, other.law, [*map(len, other.errors)])
        rows = zip(self.errors, other.errors, strict=True)
        found = [float(np.abs(self._logs(one) - self._logs(two)).max()) for one, two in rows if one != two]
        return sum(found, Fraction(0))

    def _logs(self, errors: list[int]) -> np.ndarray:
        scores, rate = [-error for error in errors], float(self.rate)
        return normed([rate * score for score in scores]) if self.law == selection.LAWS[1] else np.log(by_integral(scores, rate))


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines(Draw):
    """Nodes that were split by the exponential mechanism."""

    nodes: NodeValues
    rate: Fraction

    def gain(self, other: "Lines") -> Loss:
        rows = zip(histograms_of(self.nodes), histograms_of(other.nodes), strict=True)
        logs = partial(exponential_logs, rate=float(self.rate))
        return sum((float(np.abs(logs(one) - logs(two)).max()) for one, two in rows if one != two), Fraction(0))


def histograms_of(nodes: NodeValues) -> list[tuple[int, ...]]:
    """Records at each place of every node, from its low end."""
    found = []
    for node, (low, high) in enumerate(zip(nodes.low.tolist(), nodes.high.tolist(), strict=True)):
        own = slice(nodes.start[node], nodes.start[node + 1])
        found.append(tuple(np.bincount(nodes.value[own] - low, nodes.count[own], minlength=high - low).astype(int).tolist()))
    return found


def _laplace(tape: "Tape", counts, budget, sensitivity, **_) -> Draw:
    scale = sensitivity / budget.epsilon
    return Noise(stated=("Laplace", scale, np.shape(counts)), true=np.array(counts), scale=scale)


def _gaussian(tape: "Tape", counts, budget, squared_sensitivity, **_) -> Draw:
    variance = squared_sensitivity / (2 * budget.rho)
    return Noise(stated=("Gaussian", variance, np.shape(counts)), true=np.array(counts), scale=variance, gaussian=True)


def _flips(tape: "Tape", scores, valid, budget, sensitivity, **_) -> Draw:
    errors = [(-row[own]).tolist() for row, own in zip(scores, valid, strict=True)]
    rate = budget.epsilon / (2 * sensitivity)
    return Choice(stated=("permute-and-flip", rate, valid.tolist()), errors=errors, rate=rate, law=selection.LAWS[0])


def _choice(tape: "Tape", scores, step, bound, **_) -> Draw:
    rate = step.amount / (2 * bound * (selection.GRAIN + 1))
    return Choice(stated=(step, bound, scores.sensitivity, len(scores.error)), errors=[scores.scaled()], rate=rate, law=step.noise)


def _lines(tape: "Tape", nodes, epsilon, contributions, exponent, **_) -> Draw:
    rate = epsilon / contributions / (1 if exponent == "sharp" else 2)
    stated = ("medians", rate, nodes.low.tolist(), nodes.high.tolist())
    return Draw(stated=stated) if tape.sampled else Lines(stated=stated, nodes=nodes, rate=rate)


def _unpriced(tape: "Tape", nodes, entropy, **settings) -> Draw:
    return Draw(stated=("medians", settings, nodes.low.tolist(), nodes.high.tolist()))


def _sample(tape: "Tape", rate, **_) -> None:
    """A sample is private: nothing is written down, each run draws its own, and what is drawn from it has no bound on its own."""
    tape.sampled = tape.sampled or rate < 1


READ: dict[Callable, Callable] = {
    noise.discrete_laplace: _laplace,
    noise.discrete_gaussian: _gaussian,
    selection.permute_and_flip: _flips,
    selection.choose: _choice,
    medians.exponential_medians: _lines,
    medians.noisy_mean_medians: _unpriced,
    smooth.smooth_medians: _unpriced,
    sampling.sample_records: _sample,
}
"""The functions by which private numbers become released ones. A new one has to be added, or its random bits are refused."""


@dataclass(kw_only=True, eq=False)
class Tape:
    """The draws of a run.

    Attributes:
        seed: of the one stream of random bits.
        given: answers that are forced upon it; None for its own.
        expected: what must be asked for; None for anything.
        draws: what was asked for, in order.
        answers: what was answered.
        sampled: whether a sample was drawn.
        inside: how many of the functions are running, one inside the other; only the outermost is written down.
    """

    seed: int = 0
    given: Sequence[Any] | None = None
    expected: Sequence[Draw] | None = None
    draws: list[Draw] = field(default_factory=list)
    answers: list = field(default_factory=list)
    sampled: bool = False
    inside: int = 0

    def __post_init__(self) -> None:
        self.entropy = Entropy.seeded(self.seed).interrupted_by(self.check)

    def check(self) -> None:
        """Called before random bits are taken from the stream."""
        assert self.inside, "random bits were drawn outside the functions that the audit knows"

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def play(self, honest: Callable, *args, **kwargs) -> Any:
        """Stand in for a function."""
        if self.inside:
            return honest(*args, **kwargs)
        call = signature(honest).bind(*args, **kwargs)
        call.apply_defaults()
        assert call.arguments["entropy"] is self.entropy, "noise comes from another stream than that of the release"
        draw = READ[honest](self, **call.arguments)
        if draw is None or self.given is None:
            with self._drawing():
                answer = honest(*args, **kwargs)
        if draw is None:
            return answer
        if self.given is not None:
            place = len(self.answers)
            assert place < len(self.given), "more was drawn than on the neighbour"
            stated = draw.stated if self.expected is None else self.expected[place].stated
            assert draw.stated == stated, "the data decide what is asked for, or how much noise it gets"
            answer = self.given[place]
        self.draws.append(draw)
        self.answers.append(answer)
        return np.copy(answer) if isinstance(answer, np.ndarray) else answer

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the functions wherever modules of the package have bound them."""
        found = _bindings(len(sys.modules))
        for owner, name, honest in found:
            setattr(owner, name, partial(self.play, honest))
        try:
            yield
        finally:
            for owner, name, honest in found:
                setattr(owner, name, honest)


@cache
def _bindings(modules: int) -> list[tuple[Any, str, Callable]]:
    """Every name of a function of `READ`; looked for again once there are more modules."""
    owners = [owner for name, owner in sys.modules.items() if name.split(".")[0] == "dpviz"]
    return [(owner, name, value) for owner in owners for name, value in vars(owner).items() if isfunction(value) and value in READ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A release and the tape of its draws."""

    release: Any
    tape: Tape


def run(mechanism: Any, data: Any, budget: Budget, **options: Any) -> Run:
    """Release `data` with answers that are forced upon the run, or with its own; `options` are fields of the tape."""
    tape = Tape(**options)
    with tape.installed():
        return Run(release=mechanism.release(data, budget, tape.entropy), tape=tape)


def replayed(mechanism: Any, one: Any, other: Any, budget: Budget, seed: int = 0) -> tuple[Run, Run]:
    """Both runs; fails if anything but the chances of the draws can tell the inputs apart."""
    first = run(mechanism, one, budget, seed=seed)
    again = run(mechanism, other, budget, seed=seed, given=first.tape.answers, expected=first.tape.draws)
    assert len(first.tape.draws) == len(again.tape.draws), "less was drawn than on the neighbour"
    assert_same(first.release, again.release)
    return first, again


def gains(first: Run, again: Run) -> list[Loss | None]:
    """The largest loss of each draw on its own."""
    return [one.gain(other) for one, other in zip(first.tape.draws, again.tape.draws, strict=True)]


def spent(first: Run, again: Run, budget: Budget) -> Loss | None:
    """The part of the budget that tells both inputs apart at most, along this path; None if a draw has no bound on its own."""
    pairs, found = [*zip(first.tape.draws, again.tape.draws, strict=True)], gains(first, again)
    if None in found:
        return None
    gaussian, total = {getattr(draw, "gaussian", False) for draw, _ in pairs}, sum(found, Fraction(0))
    assert len(gaussian) <= 1, "both kinds of noise in one release have no common currency here"
    assert gaussian != {isinstance(budget, PureBudget)}, "the noise is of another kind than the budget"
    if isinstance(budget, PureBudget):
        return total / (float(budget.epsilon) if isinstance(total, float) else budget.epsilon)
    return total / budget.rho if isinstance(budget, ZcdpBudget) else _spent_of_delta(pairs, total, budget)


def _spent_of_delta(pairs: list[tuple[Noise, Noise]], rho: Fraction, budget: ApproxBudget) -> Loss:
    """Of delta where counts change by one, exactly; else of the rho that the conversion allows."""
    moved = [(draw.scale, draw.moved(other)) for draw, other in pairs if draw.gain(other)]
    if any(change.max() > 1 for _, change in moved):
        return rho / _rho(budget)
    most = max((int(change.sum()) for _, change in moved), default=0)
    return _delta(tuple(scale for scale, _ in moved), budget.epsilon, most) / float(budget.delta)


@cache
def _rho(budget: ApproxBudget) -> Fraction:
    return budget.to_zcdp().rho


@cache
def _delta(variances: tuple[Fraction, ...], epsilon: Fraction, changes: int) -> float:
    return certified_delta(variances, epsilon, changes) if variances else 0.0


def audited(mechanism: Any, pairs: Sequence[tuple[Any, Any, Budget]], *, priced: bool = True) -> list[Loss]:
    """The part of the budget that each pair of neighbours costs; fails where a pair costs more than all of it.

    Args:
        mechanism: any.
        pairs: neighbours and the budget.
        priced: whether what is drawn is released, so that losses add up; else only fields are compared.
    """
    parts: list[Loss] = []
    for seed, (one, other, budget) in enumerate(pairs):
        both = replayed(mechanism, one, other, budget, seed)
        part = spent(*both, budget) if priced else None
        if part is not None:
            assert part <= (1 if isinstance(part, Fraction) else 1 + 1e-9), f"a pair costs {float(part):.6f} of the budget"
            parts.append(part)
    return parts
