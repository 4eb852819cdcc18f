"""Lesson: a small country's trips, released by TopDown stage by stage, with both optimisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd

from dpviz.data.trips import TripCounts
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.lessons.charts import Look, step_chart, style_channel
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import FILL
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.trips.top_down import TopDown
from dpviz.privacy.budget import ApproxBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian
from dpviz.privacy.whole_numbers import nearest_whole_numbers
from dpviz.release.trip_release import PairSums, TripRelease
from dpviz.space.regions import Regions
from dpviz.view.charts import GREY, add_texts, describe_series, finish, legend, to_hex, tooltip
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE

CHEBYSHEV, EUCLIDEAN = "IntOpt (Chebyshev)", "least squares"
OPTIMISERS = {CHEBYSHEV: "chebyshev", EUCLIDEAN: "euclidean"}
STAGES = 4
DELTA = 1e-6
REPEATS = 12
FAMILY = (60, 30, 0, 0, 0, 0, 0, 0, 0)
_TOWNS = {
    "North": ("Ash", "Bay", "Cove", "Dale", "East", "Ford"),
    "Middle": ("Glen", "Hill", "Isle", "Jay", "Knoll", "Lake"),
    "South": ("Mill", "Nook", "Oak", "Pond", "Quay", "Rock"),
}
_SEED, _PAIRS = 5, 40
BETWEEN = ("the country as one pair", "country → regions", "regions → regions", "regions → towns", "towns → towns")
RIGHT, EXTRA, MISSED, EMPTY = KINDS = ("right", "false positive", "false negative", "both 0")
_BAND = alt.Scale(type="band", padding=0)
PLAIN, SUM = "count", "sum"
FILLS = {PLAIN: "#d9e2e6", EXTRA: "#f0a468", MISSED: "#7fb6e6"}
_INK = "#14191c"


@dataclass(frozen=True, kw_only=True)
class Stages(Lesson):
    """The pairs of one stage, false positives by stage, and one family of siblings."""

    key: ClassVar[str] = "topdown"
    title: ClassVar[str] = "TopDown, level by level"
    text: ClassVar[str] = (
        "From level to level TopDown adds noise to the children of every released pair, and moves them to the nearest whole numbers of at"
        " least 0 that add up to their parent; an empty pair that stays above 0 is a false positive. On sparse families like these IntOpt"
        " leaves fewer of them than least squares, and sets more small true counts to 0."
    )
    task: ClassVar[str] = "go back to level 2, then up to 4, and see where the crosses begin; then switch the optimiser."
    question: ClassVar[str] = (
        "Of the 324 pairs of towns in a small country 284 have no trips at all. TopDown adds noise of ± 12.8 trips to the pairs of a"
        " level and makes all numbers whole and 0 or more. How many of the 284 empty pairs are released with trips on them?"
    )
    choices: ClassVar[tuple[str, ...]] = ("none", "about one in nine", "about half")
    right: ClassVar[int] = 1
    answer: ClassVar[str] = (
        "33 of 284 are. Noise alone would lift half of them above 0; but a pair that was released as 0 has no children to measure, and the"
        " sum of the parent pulls small numbers down to 0. It turns with the optimiser: least squares leaves 49 of them."
    )
    in_class: ClassVar[str] = (
        "For those who release trips. Ask first what noise does to a 0, and what happens when negative numbers are cut off. Go from"
        " level 2 to level 4 and watch where the crosses begin: the more pairs are empty, the more false positives there are. False"
        " negatives are the price: small true counts that became 0. IntOpt keeps the largest change small: noise below 0 must go up to 0 in"
        " any case, and then all others may be lowered by as much."
    )

    stage: int = setting(
        4, "Level", low=0, high=STAGES, help="From one level of pairs to the next, destinations or origins become finer, in turn."
    )
    optimiser: str = setting(
        CHEBYSHEV, "Optimiser", choices=tuple(OPTIMISERS), help="The least largest change, or the least sum of squared changes."
    )
    epsilon: float = epsilon_setting(1.0, "With δ = 1e-6; one trip is replaced by another.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        release = release_country(self.optimiser, self.epsilon, self.draw)
        pairs = stage_pairs(release, self.stage)
        wrong, missed = (int((pairs["kind"] == kind).sum()) for kind in (EXTRA, MISSED))
        description = f"{len(pairs)} pairs, {wrong} false positives, {missed} false negatives."
        matrix = pair_matrix(pairs, f"Level {self.stage}: {BETWEEN[self.stage]}", description)
        truth = pair_matrix(pairs.assign(released=pairs["true"], kind=RIGHT), f"True trips: {BETWEEN[self.stage]}", f"{len(pairs)} pairs.")
        siblings = family(release.stages[-1].variance, self.draw)
        table = family_table(siblings, ("true", "noisy", CHEBYSHEV, EUCLIDEAN), "One family: nine siblings, two with trips")
        return LessonFigure(
            asked=((truth,),),
            rows=((matrix, _by_stage(false_by_stage(self.epsilon, self.draw))), (table,)),
            figures=(
                Figure("False positives", f"{wrong:,}", "Pairs of this level released above 0 although they have no trips."),
                Figure("False negatives", f"{missed:,}", "Pairs with trips that were released as 0."),
                Figure("Empty pairs", f"{empty_pairs()[self.stage]:,} of {len(pairs):,}", "That could become false positives."),
                Figure("Noise", f"± {release.stages[-1].variance ** 0.5:.3g}", "Standard deviation on every measured pair, in trips."),
            ),
            note=f"Stronger blue: more trips. Curves: mean over {REPEATS} seeded runs, bars their middle 80 %. Table: one family with the"
            " noise of a level; both optimisers see the same noisy numbers and the same sum.",
            source="Boninsegna, Silvestri, Differentially Private Release of Hierarchical Origin/Destination Data with a TopDown Approach,"
            " 2025.",
        )


def _by_stage(false_positives: pd.DataFrame) -> object:
    look = Look(
        "False positives by level", "level", "pairs", order=(CHEBYSHEV, EUCLIDEAN), height=430, description=f"Mean of {REPEATS} runs."
    )
    rows = false_positives.rename(columns={"stage": "x", "mean": "y"})
    return step_chart(rows.assign(x=rows["x"].astype(str)), look, spread=True)


def pair_matrix(table: pd.DataFrame, title: str, description: str) -> alt.LayerChart:
    """Draw the released trips of every pair; false positives and false negatives have colours and shapes of their own.

    Args:
        table: columns origin, destination, true, released, kind.
        title: title of the chart.
        description: alternative text.
    """
    names = {"origin": "from", "destination": "to", "released": "released", "true": "true", "kind": "presence"}
    axis_looks: dict[str, Any] = {"labelOverlap": False, "labelFontSize": 9, "grid": False, "domain": False, "ticks": False}
    x = alt.X(field="destination", type="ordinal", sort=None, title="to", scale=_BAND, axis=alt.Axis(labelAngle=-60, **axis_looks))
    y = alt.Y(field="origin", type="ordinal", sort=None, title="from", scale=_BAND, axis=alt.Axis(**axis_looks))
    base = alt.Chart(add_texts(table, list(names))).encode(x=x, y=y, tooltip=tooltip(names))
    scale = alt.Scale(type="sqrt", domain=[0, max(float(table["released"].max()), 1.0)], range=[0.05, 1.0])
    opacity = alt.Opacity(field="released", type="quantitative", scale=scale, legend=None)
    cells = base.mark_rect(color=FILL, stroke=GREY, strokeWidth=0.3).encode(opacity=opacity)
    kinds = {EXTRA: (to_hex(FALSE_POSITIVE), "cross"), MISSED: (to_hex(FALSE_NEGATIVE), "circle")}
    wrong = base.transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=list(kinds))).mark_point(filled=True, size=70, opacity=1)
    colors, shapes = (alt.Scale(domain=list(kinds), range=list(looks)) for looks in zip(*kinds.values(), strict=True))
    wrong = wrong.encode(
        color=alt.Color(field="kind", type="nominal", scale=colors, legend=legend("circle")),
        shape=alt.Shape(field="kind", type="nominal", scale=shapes, legend=legend("circle")),
    )
    return finish(alt.layer(cells, wrong), title, description, 430)


def family_table(table: pd.DataFrame, order: Sequence[str], title: str) -> alt.LayerChart:
    """Draw a row per version and a column per child, with a sum; false positives and negatives have their own colour and bold print.

    Args:
        table: columns child, series (the version), count.
        order: versions from top to bottom; the first is the truth, the second (the noisy numbers) is not judged.
        title: title of the chart.
    """
    rows = mark_wrong(table, order)
    names = {"child": "child", "series": "version", "count": "trips", "kind": "presence"}
    columns = list(dict.fromkeys(rows["child"]))
    base = alt.Chart(add_texts(rows, list(names))).encode(
        x=alt.X(field="child", type="ordinal", sort=columns, title="child of one parent", axis=alt.Axis(labelAngle=0, orient="bottom")),
        y=alt.Y(field="series", type="ordinal", sort=list(order), title=None, axis=alt.Axis(labelLimit=140)),
        tooltip=tooltip(names),
    )
    fill = style_channel(alt.Color, "kind", list(FILLS), list(FILLS.values()), "square")
    fill["legend"]["values"] = [EXTRA, MISSED]
    boxes = base.mark_rect(stroke=_INK, strokeWidth=0.4).encode(color=fill)
    plain, wrong = (alt.FieldOneOfPredicate(field="kind", oneOf=kinds) for kinds in ([PLAIN], [EXTRA, MISSED]))
    texts = base.mark_text(color=_INK, fontSize=12, aria=False).encode(text=alt.Text(field="label", type="nominal"))
    bold = texts.mark_text(color=_INK, fontSize=13, fontWeight="bold", aria=False)
    texts = alt.layer(texts.transform_filter(plain), bold.transform_filter(wrong))
    return finish(alt.layer(boxes, texts), title, describe_series(rows, "series", "child", "count"), 250)


def mark_wrong(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Add a sum per version, and mark false positives and negatives in the versions that optimisers made consistent.

    Args:
        table: columns child, series (the version), count.
        order: versions: the truth, the noisy numbers, and the consistent ones.
    """
    table = table.reset_index(drop=True)
    sums = table.groupby("series", sort=False, as_index=False)["count"].sum().assign(child=SUM)
    truth = table[table["series"] == order[0]].set_index("child")["count"]
    true_count, is_judged = table["child"].map(truth), table["series"].isin(list(order)[2:])
    kind = pd.Series(PLAIN, index=table.index)
    kind = kind.mask(is_judged & (true_count == 0) & (table["count"] > 0), EXTRA)
    kind = kind.mask(is_judged & (true_count > 0) & (table["count"] == 0), MISSED)
    rows: pd.DataFrame = pd.concat([table.assign(kind=kind, child=table["child"].astype(str)), sums.assign(kind=PLAIN)], ignore_index=True)
    return rows.assign(label=[f"{count:,}".replace("-", "−") for count in rows["count"]])


@lru_cache(maxsize=1)
def country() -> TripCounts:
    """Return the trips of a made-up country: eighteen towns in three regions, trips between few pairs of towns, most within a region."""
    table = pd.DataFrame([{"region": region, "town": town} for region, towns in _TOWNS.items() for town in towns])
    regions = Regions.from_table(table, levels=["region", "town"])
    rng = np.random.default_rng(_SEED)
    towns = table["town"].to_numpy()
    pairs = rng.choice(len(towns) ** 2, _PAIRS, replace=False)
    origin, destination = pairs // len(towns), pairs % len(towns)
    near = np.where(origin // 6 == destination // 6, 4.0, 1.0)
    count = np.ceil(near * (rng.pareto(1.2, _PAIRS) + 0.3) * 25).astype(np.int64)
    trips = pd.DataFrame({"origin": towns[origin], "destination": towns[destination], "count": np.minimum(count, 900)})
    return TripCounts.from_table(trips, regions=regions)


def release_country(optimiser: str, epsilon: float, draw: int) -> TripRelease:
    """Make one TopDown release. Both optimisers get the same stream of noise, and so the same noise until their choices differ."""
    mechanism = TopDown(optimiser=OPTIMISERS[optimiser])
    return mechanism.release(country(), _budget(epsilon), Entropy.seeded(draw))


@lru_cache(maxsize=32)
def _budget(epsilon: float) -> ZcdpBudget:
    """Convert (epsilon, `DELTA`) to zCDP; cached, since the tight conversion is the slowest part of a release."""
    return ApproxBudget(epsilon, DELTA).to_zcdp()


def stage_pairs(release: TripRelease, stage: int) -> pd.DataFrame:
    """Return every pair of a stage: columns origin, destination (names), true, released, and kind, one of `KINDS`."""
    evaluation, tree = evaluate_trips(release, country()), release.tree
    levels = tree.levels(stage)
    names = [side.names_of(level) for side, level in zip((tree.origins, tree.destinations), levels, strict=True)]
    origin, destination = (part.ravel().astype(np.int32) for part in np.indices((len(names[0]), len(names[1]))))
    true = evaluation.true_sums(*levels).at(origin, destination)
    released = release.sums(*levels).at(origin, destination)
    kind = np.select([(true > 0) & (released > 0), released > 0, true > 0], [0, 1, 2], 3)
    table = pd.DataFrame({"origin": names[0][origin], "destination": names[1][destination], "true": true, "released": released})
    return table.assign(kind=np.array(KINDS)[kind])


def false_by_stage(epsilon: float, draw: int) -> pd.DataFrame:
    """Count pairs released although they have no trips, by stage, over `REPEATS` runs with the seeds from `draw` on.

    Returns:
        Columns stage, series (an optimiser), mean, and low and high: the ends of the middle 80 % of the runs.
    """
    rows = []
    for name in OPTIMISERS:
        counts = np.array([_false_positives(name, epsilon, draw + repeat) for repeat in range(REPEATS)])
        low, high = np.quantile(counts, (0.1, 0.9), axis=0)
        rows.append(pd.DataFrame({"stage": range(STAGES + 1), "series": name, "mean": counts.mean(axis=0), "low": low, "high": high}))
    return pd.concat(rows, ignore_index=True)


@lru_cache(maxsize=4096)
def _false_positives(optimiser: str, epsilon: float, draw: int) -> tuple[int, ...]:
    """Count the false positives of each stage of one run: (STAGES + 1,)."""
    release = release_country(optimiser, epsilon, draw)
    return tuple(
        int((truth.at(stage.origin, stage.destination) == 0)[stage.count > 0].sum())
        for stage, truth in zip(release.stages, _true_stages(), strict=True)
    )


@lru_cache(maxsize=1)
def _true_stages() -> list[PairSums]:
    """Return the true trips of every stage."""
    evaluation = evaluate_trips(release_country(CHEBYSHEV, 1.0, 0), country())
    return [evaluation.true_sums(*evaluation.release.tree.levels(stage)) for stage in range(STAGES + 1)]


def empty_pairs() -> list[int]:
    """Count the pairs without trips of each stage."""
    tree = release_country(CHEBYSHEV, 1.0, 0).tree
    return [tree.size(stage) - len(truth.count) for stage, truth in enumerate(_true_stages())]


def family(variance: float, draw: int) -> pd.DataFrame:
    """Measure one family of siblings with noise, and make it add up with both optimisers: columns child, series, count.

    Args:
        variance: parameter of the discrete Gaussian noise.
        draw: seed of the noise.
    """
    true = np.array(FAMILY, np.int64)
    noisy = discrete_gaussian(true, ZcdpBudget(Fraction(1) / (2 * Fraction(variance))), Entropy.seeded(draw))
    parts = {"true": true, "noisy": noisy}
    for name, distance in OPTIMISERS.items():
        parts[name] = nearest_whole_numbers(noisy, total=int(true.sum()), distance=distance)
    return pd.concat([pd.DataFrame({"child": np.arange(1, len(true) + 1), "series": name, "count": each}) for name, each in parts.items()])
