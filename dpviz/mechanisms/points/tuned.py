"""Private tuning of other mechanisms' settings, in two phases: choose by expected error, then release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dpviz.data.points import PointCounts
from dpviz.errors import SettingError
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.candidates import FAMILIES, ReleasableCandidate
from dpviz.mechanisms.noisy_counts import Plan, Study
from dpviz.mechanisms.tuning import Tuning
from dpviz.privacy.budget import PureBudget, require_pure
from dpviz.privacy.entropy import Entropy
from dpviz.release.point_release import Release
from dpviz.space.domain import Domain

MOST_NODES = 2**23


@dataclass(frozen=True, kw_only=True)
class Tuned(Tuning):
    """Another mechanism, with one of its settings chosen privately by the error that it would have on random boxes.

    Protects: adding or removing one record (with a person column: one person's bounded records), in both phases.
    A person's m records may lie anywhere: added one after the other, each moves the scores by one record's sensitivity at most.

    Privacy:
        The epsilons of the total, the choice and the release add up. Each candidate bounds its expected error on public boxes and
        says, in public, how much one record moves that: `HeightCandidate`, `PruningCandidate` and `expected_grid` prove it. From
        any such bounds `clipped_scores` makes scores of a proved sensitivity. A release with the chosen setting is private by itself.

    Source:
        The two phases are those of Fanaeepour, Rubinstein, "End-to-end differentially-private parameter tuning in spatial
        histograms", 2017; other settings than the size of a grid are ours.

    Deviations:
        As for `TunedGrid` by default. One record may turn a node from pruned to split, which moves errors by more than the
        threshold: choosing a threshold was no better than tossing a coin on made-up residents from 0.2 to 200 million, while
        heights came within 15 % of the best one's error in 98 of 100 choices, where tossing a coin does in 11 to 22. A candidate
        has at most 2**23 nodes.
    """

    key: ClassVar[str] = "tuned"
    title: ClassVar[str] = "Privately tuned"
    summary: ClassVar[str] = "Spends a part of ε on choosing a setting of another mechanism, then releases with it."

    tune: str = setting("quadtree height", "What is tuned", choices=tuple(FAMILIES), help="Which setting of which mechanism is chosen.")
    values: tuple[float, ...] = setting(
        (), "Values to choose from", low=0, high=1e12, help="Left empty, a usual range; cut to the lattice, doubles left out."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if FAMILIES[self.tune].whole and not all(value.is_integer() and value >= 1 for value in self.values):
            raise SettingError(f"Values to choose from must be whole numbers of at least 1 for the {self.tune}.")

    def release(self, points: PointCounts, budget: PureBudget, entropy: Entropy) -> Release:
        """Spend a pure budget on `points`; raises `BudgetError` for any other budget."""
        budget, study = require_pure(budget, self.title), Study(points=points, entropy=entropy)
        self.check(points.domain)
        candidates = self.candidates(points.domain)
        choice = self.tune_by(study, budget, self.tune, candidates)
        chosen = candidates[choice.place]
        release = chosen.mechanism.release(points, PureBudget(choice.rest), entropy)
        study.steps.extend(release.receipt.steps)
        told = f"{chosen.mechanism.title}: the {self.tune} is {chosen.value:,g}, chosen among {len(candidates)}."
        notes = (told, *release.receipt.notes)
        plan = Plan(mechanism=self, budget=budget, unprotected=choice.unprotected, notes=notes)
        return replace(release, mechanism=self.key, settings=self.chosen(), receipt=study.receipt(plan))

    def candidates(self, domain: Domain) -> list[ReleasableCandidate]:
        """The different candidates that the lattice has room for."""
        family = FAMILIES[self.tune]
        return list(dict.fromkeys(family.candidate(value, domain) for value in sorted(self.values or family.values)))

    def check(self, frame: Domain) -> None:
        """Raise what is wrong with the boxes, or if any candidate would be too large."""
        super().check(frame)
        for candidate in self.candidates(frame):
            if (nodes := candidate.nodes(frame)) > MOST_NODES:
                told = f"a {self.tune} of {candidate.value:,g} needs {nodes:,} nodes, and at most {MOST_NODES:,} are allowed here."
                raise SettingError(f"Values to choose from: {told}")

    def alternatives(self, frame: Domain) -> int:
        """How many candidates are left on a domain."""
        return len(self.candidates(frame))
