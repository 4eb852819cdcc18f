"""Stop: TopDown stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.lessons.charts import Look, by_step
from dpviz.lessons.maps import family_table, pair_matrix
from dpviz.lessons.topdown import (
    CHEBYSHEV,
    EUCLIDEAN,
    OPTIMISERS,
    REPEATS,
    STAGES,
    empty_pairs,
    false_by_stage,
    family,
    released,
    stage_pairs,
)
from dpviz.mechanisms.base import setting

BETWEEN = ("the country as one pair", "country → regions", "regions → regions", "regions → towns", "towns → towns")


@dataclass(frozen=True, kw_only=True)
class Stages(Knobs):
    """Settings of the stop."""

    stage: int = setting(4, "Stage", low=0, high=STAGES, help="Each stage refines destinations or origins by one level, in turn.")
    optimiser: str = setting(
        CHEBYSHEV, "Optimiser", choices=tuple(OPTIMISERS), help="The least largest change, or the least sum of squared changes."
    )
    epsilon: float = epsilon_setting(1.0, "With δ = 1e-6; one trip is replaced by another.")
    draw: int = draw_setting()


def show(knobs: Stages) -> Shown:
    """The pairs of one stage, false positives by stage, and one family of siblings."""
    release = released(knobs.optimiser, knobs.epsilon, knobs.draw)
    pairs = stage_pairs(release, knobs.stage)
    false = false_by_stage(knobs.epsilon, knobs.draw)
    wrong = int((pairs["kind"] == "false positive").sum())
    missed = int((pairs["kind"] == "false negative").sum())
    told = f"{len(pairs)} pairs, {wrong} false positives, {missed} false negatives."
    matrix = pair_matrix(pairs, f"Stage {knobs.stage}: {BETWEEN[knobs.stage]}", told)
    return Shown(
        rows=((matrix, _by_stage(false)), (_family(release.stages[-1].variance, knobs.draw),)),
        figures=(
            Figure(label="False positives", value=f"{wrong:,}", help="Pairs of this stage released above 0 where nobody travels."),
            Figure(label="False negatives", value=f"{missed:,}", help="Pairs with trips that were released as 0."),
            Figure(
                label="Empty pairs", value=f"{empty_pairs()[knobs.stage]:,} of {len(pairs):,}", help="That could become false positives."
            ),
            Figure(
                label="Noise",
                value=f"± {release.stages[-1].variance ** 0.5:.3g}",
                help="Standard deviation on every measured pair, in trips.",
            ),
        ),
        note=f"Stronger blue: more trips. Curves: mean over {REPEATS} seeded draws, bars their middle 80 %. Table: one family with the"
        " noise of a stage; both optimisers see the same noisy numbers and the same sum. Noise below 0 must go up to 0 in any case;"
        " IntOpt may then lower all others by as much.",
        source="Boninsegna, Silvestri, Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown Approach,"
        " 2025.",
    )


def _by_stage(false: pd.DataFrame) -> object:
    look = Look(
        title="False positives by stage",
        x="stage",
        y="pairs",
        order=(CHEBYSHEV, EUCLIDEAN),
        height=430,
        told=f"Mean of {REPEATS} draws.",
    )
    rows = false.rename(columns={"stage": "x", "mean": "y"})
    return by_step(rows.assign(x=rows["x"].astype(str)), look, spread=True)


def _family(variance: float, draw: int) -> object:
    return family_table(family(variance, draw), ("true", "noisy", CHEBYSHEV, EUCLIDEAN), "One family: nine siblings, two with trips")


TOPDOWN = Stop(
    key="topdown",
    title="TopDown, stage by stage",
    says="TopDown measures the children of every released pair with noise and moves them to the nearest whole numbers that are at least 0"
    " and add up to their parent; noise on an empty pair that stays above 0 is a false positive. IntOpt keeps the largest change small"
    " (Chebyshev) and so is free to lower small counts to 0: on sparse families like these that gives fewer false positives than least"
    " squares, and more small true counts set to 0.",
    task="go back to stage 2, then up to 4, and see where the crosses begin; then switch the optimiser.",
    knobs=Stages,
    show=show,
)
