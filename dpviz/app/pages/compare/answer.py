"""The answer of a study: which configuration loses least, in words, and the releases that the maps show until others are picked."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import pandas as pd
import scipy

from dpviz.amounts import format_decimal
from dpviz.app.jobs.study import StudyJob, table_of
from dpviz.app.pages.compare.earlier import is_first_look
from dpviz.app.pages.compare.figures import shown_figure, shown_workload
from dpviz.app.pages.compare.state import MOST_PICKED, Pick, middle_of, picks, settle_pick
from dpviz.app.state.readers import list_words
from dpviz.arrays import Floats
from dpviz.evaluation.tables import CONFIDENCE, summary
from dpviz.view.error_axis import LOG, PERCENT, Scale, axis_heights
from dpviz.view.escape import markdown
from dpviz.view.study_charts import Target

MOST_NAMED = 3  # configurations whose errors the sentence names
MOST_FEW = 4  # repeats of which an interval reaches more than one and a half standard deviations to each side
MOST_SECONDS = 1.0  # that a release may take to be shown although nobody picked it


def describe_answer(rows: pd.DataFrame, unit: str, where: str) -> str:
    """Say in Markdown which configuration loses least at which ε, by how much, and whether that is clear; "" without rows.

    Args:
        rows: of a study's summary, for one workload and one figure.
        unit: of the figure.
        where: what is asked, such as "random boxes".
    """
    rows = _comparable(rows)
    if not len(rows):
        return ""
    lead = f"{_describe_best(rows)}, for {markdown(where)}." if len(set(rows["label"])) > 1 else ""
    return " ".join(filter(None, (lead, _describe_middle(rows, unit), _describe_doubt(rows))))


def usual_target(rows: pd.DataFrame, scale: Scale) -> float:
    """Choose a round error that the best private configuration reaches at the middle ε.

    >>> rows = pd.DataFrame({"label": "a", "epsilon": [0.1, 1, 2], "mean": [9, 1.3, 1], "private": True})
    >>> usual_target(rows, LOG)
    2.0

    Args:
        rows: of a study's summary, for one workload and one figure.
        scale: of the figure.
    """
    ranked = rank_at_middle(_comparable(rows))
    least = float(ranked["mean"].iloc[0]) if len(ranked) else 0.0
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    above = next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))
    return min(float(f"{above:.1g}"), 100.0) if scale == PERCENT else float(f"{above:.1g}")


def target_epsilons(rows: pd.DataFrame, target: float, scale: Scale) -> dict[str, float]:
    """Find from which ε on each private configuration has at most an error, along the lines of the chart.

    Args:
        rows: of a study's summary, for one workload and one figure.
        target: the error.
        scale: of the figure.

    Returns:
        By label: infinite if the error is larger at the largest ε of the study, 0 if it is smaller at every ε.
    """
    found = {}
    for label, curve in _comparable(rows).sort_values("epsilon").groupby("label", sort=False):
        epsilons, errors = (curve[name].to_numpy(np.float64) for name in ("epsilon", "mean"))
        found[str(label)] = _cross(epsilons, errors, target, scale)
    return {label: found[label] for label in dict.fromkeys(rows["label"]) if label in found}


def describe_target(rows: pd.DataFrame, target: Target, unit: str) -> str:
    """Say in Markdown from which ε on each configuration reaches a target; "" without private configurations.

    Args:
        rows: of a study's summary, for one workload and one figure.
        target: with the ε of `target_epsilons`.
        unit: of the figure.
    """
    least, most = (f"{end:g}" for end in (rows["epsilon"].min(), rows["epsilon"].max()))
    texts = []
    for label, epsilon in sorted(target.epsilons.items(), key=lambda pair: pair[1]):
        reached = f"ε {format_decimal(epsilon, 2)}" if epsilon else f"ε {least} or less"
        texts.append(f"**{markdown(label)}** {f'not reached up to ε {most}' if math.isinf(epsilon) else reached}")
    return f"At most {format_decimal(target.error, 3)} {markdown(unit)}: {'; '.join(texts)}." if texts else ""


def describe_contrasts(rows: pd.DataFrame, contrasts: Collection[str], scale: Scale = LOG) -> str:
    """Say in Markdown at which ε the best private configuration is as useful as each contrast; "" without both.

    Args:
        rows: of a study's summary, for one workload and one figure.
        contrasts: labels of the configurations that have no ε.
        scale: of the figure.
    """
    equal = equal_epsilons(rows, contrasts, scale)
    return " ".join(f"{markdown(label)}: {_describe_equal(*found)}." for label, found in equal.items())


def equal_epsilons(rows: pd.DataFrame, contrasts: Collection[str], scale: Scale = LOG) -> dict[str, tuple[str, float, tuple[float, float]]]:
    """Find the ε at which the private configuration with the least error at the middle ε has the same error as each contrast.

    Args:
        rows: of a study's summary, for one workload and one figure.
        contrasts: labels of the configurations that have no ε.
        scale: of the figure; between two ε of the study, its line in the chart is taken.

    Returns:
        By the label of each contrast: the label of the private configuration; the largest such ε, infinite if its error is larger at every
        ε, 0 if it is smaller at every ε; and the smallest and the largest ε of the study.
    """
    finite = rows[np.isfinite(rows["mean"].astype(float))]
    private = finite[finite["private"].astype(bool)]
    if not len(private):
        return {}
    best = str(rank_at_middle(private)["label"].iloc[0])
    curve = private[private["label"] == best].sort_values("epsilon")
    epsilons, errors = (curve[name].to_numpy(np.float64) for name in ("epsilon", "mean"))
    means = finite[finite["label"].isin(contrasts)].groupby("label", sort=False)["mean"].mean()
    ends = float(epsilons[0]), float(epsilons[-1])
    return {str(label): (best, _cross(epsilons, errors, float(mean), scale), ends) for label, mean in means.items()}


def _cross(epsilons: Floats, errors: Floats, wanted: float, scale: Scale) -> float:
    """Find the largest ε at which a line of the chart, ascending by ε, comes down to the wanted error; infinite or 0 beyond its ends."""
    if errors[-1] > wanted:
        return math.inf
    above = np.flatnonzero(errors > wanted)
    if not len(above):
        return 0.0
    last = int(above[-1])
    x, y = np.log(epsilons[last : last + 2]), axis_heights(errors[last : last + 2], scale)
    share = (y[0] - float(axis_heights(wanted, scale))) / (y[0] - y[1])
    return math.exp(x[0] + share * (x[1] - x[0]))


def _describe_equal(private: str, epsilon: float, ends: tuple[float, float]) -> str:
    name = f"**{markdown(private)}**"
    if not epsilon:
        return f"less useful than {name} even at ε {ends[0]:g}"
    if math.isinf(epsilon):
        return f"more useful than {name} even at ε {ends[1]:g}"
    return f"about as useful as {name} at ε {format_decimal(epsilon, 2)}"


def list_contrasts(job: StudyJob) -> list[str]:
    """List the labels of configurations that have no ε."""
    return [label for label, mechanism in job.of.study.mechanisms.items() if not mechanism.spends]


def shown_picks(job: StudyJob) -> list[Pick]:
    """Return the releases on the maps: those that were picked, or else the configurations with the least errors at the middle ε.

    Contrasts, if there are any, are shown beside the private configuration that is as useful as the first of them, at the nearest ε. While
    a study runs, and where a release takes long, nothing is shown that was not picked. A first look does not ask how long they took, which
    differs from computer to computer.
    """
    if (picked := picks(job)) or not job.has_ended:
        return picked
    table, figure = table_of(job), shown_figure(job.of.config[1])
    if not len(table):
        return []
    rows = summary(table[table["workload"] == shown_workload(job.of.study.questions.names(), figure)])
    rows = rows[rows["figure"] == figure]
    ranked = rank_at_middle(_comparable(rows))
    pairs = [(str(label), float(epsilon)) for label, epsilon in zip(ranked["label"], ranked["epsilon"], strict=True)]
    pairs = _pair_contrasts(job, rows) or pairs
    if not is_first_look(job):
        seconds = table.groupby(["label", "epsilon"])["seconds"].min()  # the quickest repeat, whatever else the computer did
        pairs = [pair for pair in pairs if seconds[pair] <= MOST_SECONDS]
    return pairs[: MOST_PICKED - 1]


def _pair_contrasts(job: StudyJob, rows: pd.DataFrame) -> list[Pick]:
    """Return the private configuration that is as useful as the first contrast, at the nearest ε, and all contrasts; [] without both."""
    equal = equal_epsilons(rows, list_contrasts(job))
    if not equal:
        return []
    best, epsilon, ends = next(iter(equal.values()))
    wanted = math.log(min(max(epsilon, ends[0]), ends[1]))
    nearest = min(map(float, job.of.study.epsilons), key=lambda each: abs(math.log(each) - wanted))
    return [(best, nearest), *(settle_pick(job, (label, nearest)) for label in equal)]


def rank_at_middle(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the middle ε, the least error first."""
    return rows[rows["epsilon"] == middle_of(rows["epsilon"].unique())].sort_values("mean", kind="stable") if len(rows) else rows


def _comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of private configurations; those of references only if there are no others."""
    rows = rows[np.isfinite(rows["mean"].astype(float))]
    private = rows[rows["private"].astype(bool)]
    return private if len(private) else rows


def _describe_best(rows: pd.DataFrame) -> str:
    """Name the configuration with the least error at each ε; several where they are equal."""
    epsilons_by_name: dict[str, list[str]] = {}
    for epsilon, group in rows.groupby("epsilon"):
        names = group.loc[group["mean"] == group["mean"].min(), "label"]
        best = list_words([f"**{markdown(name)}**" for name in names]) + (" has" if len(names) == 1 else " have")
        epsilons_by_name.setdefault(best, []).append(f"{epsilon:g}")
    (first, epsilons), *others = epsilons_by_name.items()
    where = "every ε" if not others and len(epsilons) > 1 else f"ε {list_words(epsilons)}"
    return ", ".join([f"{first} the least error at {where}", *(f"{best} it at ε {list_words(epsilons)}" for best, epsilons in others)])


def _describe_middle(rows: pd.DataFrame, unit: str) -> str:
    """Name the errors of the best configurations at the middle ε."""
    ranked = rank_at_middle(rows)
    values = [f"{markdown(label)} {format_decimal(mean, 3)} {unit}" for label, mean in zip(ranked["label"], ranked["mean"], strict=True)]
    more = f", {len(values) - MOST_NAMED} more" if len(values) > MOST_NAMED else ""
    return f"At ε {ranked['epsilon'].iloc[0]:g}: {', '.join(values[:MOST_NAMED])}{more}."


def _describe_doubt(rows: pd.DataFrame) -> str:
    """Say where the lead of the best may be chance: where its 95 % interval meets that of the next; "" if it is clear everywhere."""
    pairs = [group.nsmallest(2, "mean") for _, group in rows.groupby("epsilon") if len(group) > 1]
    if pairs and rows["runs"].max() == 1:
        return "From one repeat each: the order may be chance."
    unclear = [pair for pair in pairs if not pair["high"].iloc[0] < pair["low"].iloc[1]]
    if not unclear:
        return ""
    where = "this ε" if len(pairs) == 1 else f"{len(unclear)} of {len(pairs)} ε"
    lead, runs = f"At {where} the 95 % intervals of the best two overlap", int(rows["runs"].max())
    if runs > MOST_FEW:
        return f"{lead}: more repeats may change their order."
    reach = float(scipy.special.stdtrit(runs - 1, (1 + CONFIDENCE) / 2)) / math.sqrt(runs)
    return (
        f"{lead}. Of {runs} repeats such an interval reaches {reach:.1f} standard deviations to each side (Student's t), and so hides most"
        " leads: more repeats make it narrower, and may change the order."
    )
