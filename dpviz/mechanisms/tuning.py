"""Private tuning in two phases: choose one of a few candidates by how well it would do, then release it with what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, Self

import numpy as np

from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import Settings, Share, setting, shares_of
from dpviz.mechanisms.box_shares import Asked, Boxes, tuning_boxes
from dpviz.mechanisms.grid_bounds import Expected
from dpviz.mechanisms.noisy_counts import Study
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.error_scores import LAWS, Scores, choice_step, choose, clipped_scores
from dpviz.space.domain import Domain

SMALLEST_TOTAL = 100
PAPER_SIZES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.8)


class Candidate(Protocol):
    """A way to release whose expected error on boxes can be written down."""

    def expected(self, asked: Asked, budget: PureBudget) -> Expected:
        """Bounds on its absolute error on boxes with `budget`, and how much one record moves them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """What tuning decided.

    Attributes:
        place: of the chosen candidate.
        rest: what is left of epsilon.
        unprotected: what it took as public.
    """

    place: int
    rest: Fraction
    unprotected: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tuning(Settings[Domain]):
    """Settings of private tuning, and its first phase; `TunedGrid` and `Tuned` say what is tuned."""

    tuning_share: float = setting(
        0.2, "Share for tuning", low=0.01, high=0.8, help="The part of ε that pays for the choice; what is left pays for the release."
    )
    declared_total: int | None = setting(
        None,
        "Declared number of records",
        optional=True,
        low=0,
        high=2**53,
        help="A number of records, or a guess of it, that is public already. Left empty, a share of ε buys a noisy one.",
    )
    total_share: float = setting(
        0.02,
        "Share for the total",
        low=0.001,
        high=0.1,
        when=("declared_total", None),
        help="The part of ε that buys the noisy total, from which errors are told large from small.",
    )
    sanity: float = setting(
        0.1, "Sanity bound δ", low=1e-4, high=0.5, help="Answers under this share of the total count as this share in relative errors."
    )
    clip: float = setting(0.25, "Clip errors at", low=0.01, high=100, help="Relative errors above it count as this; lower is less noise.")
    sizes: tuple[float, ...] = setting(
        PAPER_SIZES, "Sizes of tuning boxes", low=0.001, high=1, help="Shares of the domain's width and height that answers matter for."
    )
    per_size: int = setting(100, "Boxes per size", low=1, high=1000, help="How many boxes of each size, anywhere in the domain.")
    seed: int = setting(7, "Seed of the boxes", low=0, high=2**31, help="Public: the boxes are random, but never drawn from the data.")
    law: str = setting(LAWS[0], "Law of the choice", choices=LAWS, help="Permute-and-flip is never worse; the paper has the other.")

    def boxes(self, domain: Domain) -> Boxes:
        """The public boxes to tune by; raises `SettingError` if there are none or too many."""
        return tuning_boxes(domain, self.sizes, self.per_size, self.seed)

    def tune_by(self, study: Study, budget: PureBudget, purpose: str, candidates: Sequence[Candidate]) -> Choice:
        """The first phase: buy the total if none is declared, then choose; a single candidate costs nothing.

        Privacy:
            The total is a count with noise. All else that decides the scores' sensitivities is public: boxes, candidates, budget,
            and rho, which is made from the noisy or the declared total. See `clipped_scores` for the choice.
        """
        if len(candidates) == 1:
            return Choice(place=0, rest=budget.epsilon)
        amount, rest, total = self._total(study, budget)
        step = choice_step(purpose, amount, self.law, study.points.contributions, len(candidates))
        scores = self.scores(study.points, PureBudget(rest), total, candidates)
        study.steps.append(step)
        place = choose(scores, step, study.points.contributions, study.entropy)
        declared = self.declared_total is not None
        unprotected = (f"the declared number of records ({self.declared_total:,})",) if declared else ()
        return Choice(place=place, rest=rest, unprotected=unprotected)

    def scores(self, points: PointCounts, budget: PureBudget, total: int, candidates: Sequence[Candidate]) -> Scores:
        """How the candidates would do with `budget`. PRIVATE."""
        asked = Asked(points=points, boxes=self.boxes(points.domain))
        found = [candidate.expected(asked, budget) for candidate in candidates]
        errors, moved = np.stack([each.error for each in found]), [each.moved for each in found]
        return clipped_scores(errors, asked.truth, self.rho(total), self.clip, moved, asked.boxes.most_inside)

    def rho(self, total: int) -> float:
        """The sanity bound: delta times the total, which counts as 100 at least."""
        return self.sanity * max(total, SMALLEST_TOTAL)

    def _total(self, study: Study, budget: PureBudget) -> tuple[Fraction, Fraction, int]:
        """Epsilon for the choice, epsilon for the release, and the public number of records."""
        parts = budget.split([share.share for share in self._parts()])
        if self.declared_total is not None:
            return parts[0], parts[1], self.declared_total
        true = np.array([study.points.count.sum()], np.int64)
        noisy, _ = study.count("total, for the sanity bound", true, parts[0])
        return parts[1], parts[2], int(noisy[0])

    def _parts(self) -> list[Share]:
        declared = self.declared_total is not None
        total = [] if declared else [Share(label="total", share=self.total_share, structure=True)]
        rest = 1 - self.tuning_share - sum(part.share for part in total)
        return [*total, Share(label="tuning", share=self.tuning_share, structure=True), Share(label="counts", share=rest)]

    def check(self, frame: Domain) -> None:
        """Raise if there are no boxes to tune by, or too many."""
        self.boxes(frame)
        super().check(frame)

    def shares(self, frame: Domain) -> list[Share]:
        """The total, where it is bought, against tuning and counts."""
        return self._parts() if self.alternatives(frame) > 1 else super().shares(frame)

    def with_shares(self, shares: Sequence[float]) -> Self:
        """The first parts become the shares for the total and for tuning, within their ranges."""
        if len(shares) < 2:
            return self
        parts = shares_of(shares)
        tuned = replace(self, tuning_share=min(max(parts[-2], 0.01), 0.8))
        return replace(tuned, total_share=min(max(parts[0], 0.001), 0.1)) if len(shares) == 3 else tuned

    def alternatives(self, frame: Domain) -> int:
        """How many candidates are left on a domain."""
        raise NotImplementedError
