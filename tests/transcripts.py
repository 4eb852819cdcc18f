"""Whole releases along scripts: every random answer is given by hand, so that nothing else can distinguish two inputs.

One run writes down every request for randomness and its answer; the run on a neighbouring input gets the
same answers, so whatever it chooses from them must be the same. The loss is the sum over all answers of how much likelier one
input makes them: exactly |difference of true counts| / scale for noise on counts, and ln(P / Q) for lines and choices. For Gaussian noise
it is the rho of zCDP: exactly (difference of true counts)**2 / (2 variance).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from dpviz.data.points import PointCounts
from dpviz.mechanisms import run as measure
from dpviz.mechanisms import tuning
from dpviz.mechanisms.points import dawa, htf, kdtree, median_tree, path_tree, privtree
from dpviz.privacy.budget import ApproxBudget, Budget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.medians import _sum_values
from dpviz.privacy.node_values import NodeValues
from dpviz.privacy.sampling import epsilon_before_sampling
from dpviz.privacy.selection import GRAIN, LAWS
from dpviz.release.point_release import PointRelease
from tests.nodes import Histogram, exponential_logs
from tests.replay import Choice, Noise, histograms_of

EPSILON, DELTA = Fraction("1.3"), Fraction("1e-6")


def pair(matrix: np.ndarray, cells: Sequence, bound: int | None = None) -> tuple[PointCounts, PointCounts]:
    """A matrix, and the same with one record more in each of the cells: one person's, who may have `bound` records."""
    more = matrix.copy()
    np.add.at(more.ravel(), cells, 1)
    return tuple(replace(PointCounts.from_matrix(each), contributions=bound or len(cells)) for each in (matrix, more))


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Nodes that were split by the exponential mechanism on a sample, each at its line."""

    nodes: NodeValues
    epsilon: Fraction
    rate: Fraction
    sample: Fraction
    line: np.ndarray

    def gains(self, other: "Lines") -> Iterator[np.ndarray]:
        """Per node the (lines,) log-ratios of its chances in the two inputs."""
        assert (self.rate, self.sample, len(self.nodes)) == (other.rate, other.sample, len(other.nodes))
        np.testing.assert_array_equal([self.nodes.low, self.nodes.high], [other.nodes.low, other.nodes.high])
        for one, two in zip(histograms_of(self.nodes), histograms_of(other.nodes), strict=True):
            yield sampled_logs(one, self.rate, self.sample) - sampled_logs(two, self.rate, self.sample)

    def gain(self, other: "Lines") -> float:
        """Loss of the lines that were answered, signed: positive where the first input makes them likelier."""
        lines = (self.line - self.nodes.low - 1).tolist()
        return float(sum(gains[line] for gains, line in zip(self.gains(other), lines, strict=True)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Means:
    """Nodes that were split at noisy means."""

    nodes: NodeValues
    epsilon: Fraction

    def gain(self, other: "Means") -> float:
        """Largest loss of any noisy sums and numbers."""
        widths = (self.nodes.high - self.nodes.low - 1).tolist()
        moved = np.abs(_sum_values(self.nodes) - _sum_values(other.nodes)).tolist()
        records = np.abs(self.nodes.records - other.nodes.records).tolist()
        return float(sum(self.epsilon / 2 * (Fraction(s, w) + n) for s, w, n in zip(moved, widths, records, strict=True)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Smooth:
    """Nodes that were split by smooth sensitivity, whose loss has no bound on its own."""

    nodes: NodeValues
    budget: ApproxBudget
    bound: int
    sample: Fraction


@cache
def sampled_logs(histogram: Histogram, rate: Fraction, sample: Fraction) -> np.ndarray:
    """(width - 1,) logarithms of the lines' chances, over all subsamples of the records if they are thinned."""
    if sample == 1:
        return exponential_logs(histogram, float(rate))
    mixed, chance = np.zeros(len(histogram) - 1), float(sample)
    for kept in product(*(range(count + 1) for count in histogram)):
        weight = math.prod(math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k, n in zip(kept, histogram, strict=True))
        mixed += weight * np.exp(exponential_logs(kept, float(rate)))
    return np.log(mixed)


@dataclass(kw_only=True)
class Script:
    """Stands in for noise, choices and medians: writes down each request, and answers from a list or makes the answers up.

    Attributes:
        given: answers, first to last; later ones are made up.
        reach: the least noise that is made up, and what it stays below.
        budget: of the runs; None for `EPSILON`, with `DELTA` where it is needed.
    """

    given: list = field(default_factory=list)
    seed: int = 0
    reach: tuple[int, int] = (-2, 4)
    budget: Budget | None = None
    requests: list[Noise | Choice | Lines | Means | Smooth | None] = field(default_factory=list)
    answers: list = field(default_factory=list)
    sample: Fraction = Fraction(1)
    entropy: Entropy = field(default_factory=lambda: Entropy.seeded(0))

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def install(self, monkeypatch) -> None:
        for module in (measure, htf, path_tree):
            monkeypatch.setattr(module, "discrete_laplace", self.noise)
        monkeypatch.setattr(measure, "discrete_gaussian", self.gaussian)
        for module in (privtree, dawa):
            monkeypatch.setattr(module, "discrete_laplace", self.split)
        monkeypatch.setattr(htf, "permute_and_flip", self.flip)
        monkeypatch.setattr(tuning, "choose", self.choose)
        monkeypatch.setattr(median_tree, "exponential_medians", self.exponential)
        monkeypatch.setattr(kdtree, "noisy_mean_medians", self.means)
        monkeypatch.setattr(kdtree, "smooth_medians", self.smooth)
        for module in (median_tree, kdtree):
            monkeypatch.setattr(module, "sample_records", self.thinned)

    def _answer(self, made_up: np.ndarray) -> np.ndarray:
        place = len(self.answers)
        self.answers.append(self.given[place] if place < len(self.given) else made_up)
        assert self.answers[-1].shape == made_up.shape
        return self.answers[-1].copy()

    def _lines(self, nodes: NodeValues) -> np.ndarray:
        return self._answer(self.rng.integers(nodes.low + 1, nodes.high))

    def made_up(self, counts: np.ndarray, scale: Fraction) -> np.ndarray:
        unit = 1 if scale < 2**12 else 2**16  # the objectives of splits are in units of 2**-16
        return counts + self.rng.integers(self.reach[0] * unit, self.reach[1] * unit, len(counts))

    def noise(self, counts, budget, entropy, sensitivity=1):
        assert entropy is self.entropy
        self.requests.append(Noise(true=counts.copy(), scale=sensitivity / budget.epsilon))
        return self._answer(self.made_up(counts, self.requests[-1].scale))

    def gaussian(self, counts, budget, entropy, squared):
        assert entropy is self.entropy
        self.requests.append(Noise(true=counts.copy(), scale=squared / (2 * budget.rho), gaussian=True))
        return self._answer(self.made_up(counts, Fraction(1)))

    def split(self, bias, budget, entropy, sensitivity=1):
        """Choices of whole trees, whose loss is not a sum over draws: PrivTree's and DAWA's, see their own tests."""
        assert entropy is self.entropy
        return self._answer(self.made_up(bias, Fraction(1)))

    def flip(self, scores, valid, budget, entropy, sensitivity=1):
        assert entropy is self.entropy
        errors = [(-row[own]).tolist() for row, own in zip(scores, valid, strict=True)]
        self.requests.append(Choice(errors=errors, rate=budget.epsilon / (2 * sensitivity), law=LAWS[0]))
        return self._answer(np.array([self.rng.choice(np.flatnonzero(row)) for row in valid], np.int64))

    def choose(self, scores, step, bound, entropy):
        assert entropy is self.entropy
        self.requests.append(Choice(errors=[scores.scaled()], rate=step.amount / (2 * bound * (GRAIN + 1)), law=step.noise))
        return int(self._answer(self.rng.integers(0, len(scores.error), 1))[0])

    def thinned(self, nodes, rate, entropy):
        assert entropy is self.entropy
        self.sample = rate
        return nodes

    def exponential(self, nodes, epsilon, entropy, contributions=1, exponent="sharp"):
        assert entropy is self.entropy
        rate = epsilon / contributions / (1 if exponent == "sharp" else 2)
        line = self._lines(nodes)
        self.requests.append(Lines(nodes=nodes, epsilon=epsilon, rate=rate, sample=self.sample, line=line))
        return line

    def means(self, nodes, epsilon, entropy, contributions=1, *, outside="nearest"):
        assert entropy is self.entropy
        self.requests += [Means(nodes=nodes, epsilon=epsilon / contributions), None]
        self._answer(np.zeros(0, np.int64))
        return self._answer(nodes.low + 1) if self.seed == 0 else self._lines(nodes)

    def smooth(self, nodes, budget, entropy, contributions=1, *, outside="nearest"):
        assert entropy is self.entropy
        self.requests.append(Smooth(nodes=nodes, budget=budget, bound=contributions, sample=self.sample))
        return self._lines(nodes)


def run(monkeypatch, mechanism, points: PointCounts, script: Script, epsilon: Fraction = EPSILON) -> PointRelease:
    budget = script.budget or (ApproxBudget(epsilon, DELTA) if mechanism.needs_delta else PureBudget(epsilon))
    with monkeypatch.context() as patched:
        script.install(patched)
        return mechanism.release(points, budget, script.entropy)


def compared(monkeypatch, mechanism, one: PointCounts, other: PointCounts, script: Script) -> tuple[Script, Script]:
    """Both runs along one script; fails if anything but the answers' chances can tell the inputs apart."""
    released = run(monkeypatch, mechanism, one, script)
    second = Script(given=script.answers, budget=script.budget)
    again = run(monkeypatch, mechanism, other, second)
    assert len(script.requests) == len(second.requests)
    assert len(second.answers) == len(script.answers)
    np.testing.assert_array_equal(released.tree.rectangles(), again.tree.rectangles())
    np.testing.assert_array_equal(released.tree.children, again.tree.children)
    for name in ("noisy", "second_measurement", "noise_variance", "count", "unbiased", "node_stddev"):
        np.testing.assert_array_equal(getattr(released, name), getattr(again, name))
    assert released.receipt == again.receipt
    assert (released.steps, released.settings, released.approximate) == (again.steps, again.settings, again.approximate)
    if mechanism.key not in ("path_tree", "htf", "privtree", "dawa"):  # of which one step stands for several draws
        for request, step in zip(script.requests, released.receipt.steps, strict=True):
            assert_stated(request, step, one.contributions)
    return script, second


def assert_stated(request: Noise | Choice | Lines | Means | Smooth | None, step: measure.Step, bound: int) -> None:
    """What the receipt says about a step is what was requested."""
    if isinstance(request, Noise):
        assert (request.scale, len(request.true)) == (step.scale, step.counts)
        assert request.scale * step.amount * (2 if request.gaussian else 1) == step.sensitivity
        assert ("Gaussian" in step.noise) == request.gaussian
    if isinstance(request, Lines):
        assert (request.rate * step.scale, len(request.nodes)) == (1, step.counts)
        assert request.epsilon == epsilon_before_sampling(step.amount, request.sample, bound)
        assert request.rate * bound <= request.epsilon
    if isinstance(request, Smooth):
        assert (request.budget.epsilon, len(request.nodes)) == (epsilon_before_sampling(step.amount, request.sample, bound), step.counts)
        assert request.budget.delta <= step.delta / (1 - (1 - request.sample) ** bound)
        assert request.bound == bound
    if isinstance(request, Means):
        assert (2 / request.epsilon, request.epsilon * bound / 2, len(request.nodes)) == (step.scale, step.amount, step.counts)


def loss(first: Script, second: Script) -> Fraction | float:
    """Largest loss of any release along these lines, whichever of the two inputs is the true one; but for smooth medians."""
    noise, lines = Fraction(0), 0.0
    for one, other in zip(first.requests, second.requests, strict=True):
        if isinstance(one, Lines):
            lines += one.gain(other)
        elif isinstance(one, Noise | Choice | Means):
            noise += one.gain(other)
    return noise + abs(lines) if lines else noise


def worst_loss(
    monkeypatch, mechanism, one: PointCounts, other: PointCounts, seed: int = 0, budget: Budget | None = None
) -> Fraction | float:
    """The loss along one script, its lines chosen level by level to give the first input away."""
    given: list[np.ndarray] = []
    while True:
        first, second = compared(monkeypatch, mechanism, one, other, Script(given=given, seed=seed, budget=budget))
        later = [place for place, request in enumerate(first.requests) if isinstance(request, Lines) and place >= len(given)]
        if not later:
            return loss(first, second)
        request, against = first.requests[later[0]], second.requests[later[0]]
        best = [_telling(gains, line) for gains, line in zip(request.gains(against), request.line - request.nodes.low - 1, strict=True)]
        given = [*first.answers[: later[0]], request.nodes.low + 1 + np.array(best)]


def _telling(gains: np.ndarray, made_up: int) -> int:
    """The last of the lines that tell most, so that what is below stays wide; any if none tells anything."""
    return int(np.flatnonzero(gains > gains.max() - 1e-9)[-1]) if gains.any() else made_up
