"""Figures 3 to 6 of the InfTDA paper as tables: errors, false positives and run times of released trips, by stage and by budget.

One call of `measure_sets` measures all that Figures 4 to 6 show, and the charts of `dpviz.papers.inftda_charts` take its table: call it
once if you want several of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd

from dpviz.arrays import Floats
from dpviz.data.trips import TripCounts
from dpviz.errors import DomainError, SettingError
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms.trips.base import TripMechanism
from dpviz.mechanisms.trips.flat_gaussian import FlatGaussian
from dpviz.mechanisms.trips.stability_histogram import StabilityHistogram
from dpviz.mechanisms.trips.top_down import TopDown
from dpviz.papers.clock import seconds_now
from dpviz.papers.parts import join_parts
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.trips import DENSITIES, PAPER_SEED, PARTITIONS, made_up_country, synthetic_trips

Sets = Mapping[str, TripCounts]
Methods = Mapping[str, TripMechanism]

EPSILONS = (0.1, 1.0, 10.0)
DELTA = "1e-8"
REPEATS = 10
SEED = 2025
METHODS = ("VanillaGauss", "SH", "InfTDA", "TDA-l2", "TDA-linf")
TOP_DOWN = METHODS[2:]
STAGE_MEASURES = ("max_error", "false_discovery")


def paper_methods(names: Sequence[str] = METHODS) -> dict[str, TripMechanism]:
    """Build the paper's methods by name, with its conversion of (epsilon, delta), its threshold, and equal budgets for all stages.

    Args:
        names: some of `METHODS`.

    >>> list(paper_methods(TOP_DOWN))
    ['InfTDA', 'TDA-l2', 'TDA-linf']
    """
    methods: dict[str, TripMechanism] = {
        "VanillaGauss": FlatGaussian(accounting="paper"),
        "SH": StabilityHistogram(threshold="paper"),
        "InfTDA": TopDown(accounting="paper"),
        "TDA-l2": TopDown(accounting="paper", optimiser="euclidean"),
        "TDA-linf": TopDown(accounting="paper", optimiser="solver"),
    }
    return {name: methods[name] for name in names}


def paper_sets(densities: Sequence[str] = tuple(DENSITIES), *, seed: int = PAPER_SEED) -> dict[str, TripCounts]:
    """Make up the paper's six synthetic sets, by name: "binary_complete" to "random_sparse".

    Args:
        densities: some of "complete", "dense" and "sparse".
        seed: of the partitions and of the trips.

    Source:
        Boninsegna, Silvestri, 2025, Section 5, "Synthetic Datasets"; see `dpviz.samples.trips.synthetic_trips`.
    """
    pairs = product(PARTITIONS, densities)
    return {f"{partition}_{density}": synthetic_trips(partition, density, seed=seed) for partition, density in pairs}


class Runs(TypedDict, total=False):
    """The releases of a figure, as keyword arguments; what is left out is the paper's.

    Attributes:
        epsilons: budgets, `EPSILONS`; delta is the paper's 1e-8.
        repeats: releases with fresh noise per method and epsilon, at least 1, `REPEATS`.
        seed: of the noise, `SEED`.
    """

    epsilons: Sequence[float]
    repeats: int
    seed: int


def measure_methods(
    trips: TripCounts,
    methods: Methods,
    *,
    epsilons: Sequence[float] = EPSILONS,
    repeats: int = REPEATS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Make several releases by each method, and measure their errors, false positives and run times. CURATOR ONLY.

    If a method refuses the data at an epsilon, it has no rows there. TDA-linf refuses regions of more than 64 parts, and stages of more
    than 50,000 numbers for its solver; VanillaGauss refuses more than 2**28 pairs.

    Args:
        trips: private.
        methods: the methods by name.
        epsilons: budgets; delta is the paper's 1e-8.
        repeats: releases with fresh noise per method and epsilon, at least 1.
        seed: of the noise. The noise of a method does not depend on methods that come after it.

    Returns:
        One row per method, epsilon, measure and stage: epsilon, method, measure, stage (missing for the run time), between (the name of the
        stage), and mean, minimum and maximum over the repeats. The measures are "max_error" (the largest absolute error of all pairs of
        the stage, in trips), "false_discovery" (percent of the released pairs without true trips) and "seconds" (wall-clock time of a whole
        release; a first run also computes what later ones take from a cache).

    Raises:
        SettingError: `repeats` is less than 1.
        InputError: more than one trip per person, which SH refuses.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [900]}), regions=regions)
    >>> table = measure_methods(trips, paper_methods(["InfTDA"]), epsilons=[10], repeats=2)
    >>> table[["measure", "stage", "between"]].iloc[[1, 6]].to_numpy().tolist()
    [['max_error', 1, 'all to town'], ['seconds', <NA>, '']]
    """
    if repeats < 1:
        raise SettingError("repeats must be at least 1.")
    streams = Entropy.seeded(seed).spawn(len(methods) * len(epsilons) * repeats)
    rows: list[dict[str, object]] = []
    for number, ((name, mechanism), epsilon) in enumerate(product(methods.items(), epsilons)):
        of_method = streams[number * repeats : (number + 1) * repeats]
        try:
            seconds, stages = zip(*(_measure_run(mechanism, trips, epsilon, stream) for stream in of_method), strict=True)
        except (SettingError, DomainError):
            continue
        rows += [{"epsilon": float(epsilon), "method": name, **row} for row in _make_rows(seconds, stages)]
    columns = ["epsilon", "method", "measure", "stage", "between", "mean", "minimum", "maximum"]
    return pd.DataFrame(rows, columns=columns).astype({"stage": "Int64"})


def _measure_run(mechanism: TripMechanism, trips: TripCounts, epsilon: float, entropy: Entropy) -> tuple[float, pd.DataFrame]:
    """Make a release; return the seconds that it took, and its `TripEvaluation.by_stage`. CURATOR ONLY."""
    start = seconds_now()
    release = mechanism.release(trips, ApproxBudget(str(epsilon), DELTA), entropy)
    return seconds_now() - start, evaluate_trips(release, trips).by_stage


def _make_rows(seconds: Sequence[float], tables: Sequence[pd.DataFrame]) -> list[dict[str, object]]:
    """Make a row per measure and stage of repeated releases, and a last one for their run time."""
    rows = []
    for measure in STAGE_MEASURES:
        values = np.array([table[measure] for table in tables], np.float64)
        stages = zip(tables[0]["stage"], tables[0]["between"], values.T, strict=True)
        rows += [{"measure": measure, "stage": stage, "between": name, **_summarise(of_stage)} for stage, name, of_stage in stages]
    return [*rows, {"measure": "seconds", "stage": pd.NA, "between": "", **_summarise(seconds)}]


def _summarise(values: Sequence[float] | Floats) -> dict[str, object]:
    """Return the mean, the minimum and the maximum."""
    return {"mean": float(np.mean(values)), "minimum": float(np.min(values)), "maximum": float(np.max(values))}


def measure_sets(sets: Sets | None = None, methods: Methods | None = None, **runs: Unpack[Runs]) -> pd.DataFrame:
    """Measure methods on several sets: all that Figures 4 to 6 show, from the same runs. CURATOR ONLY.

    With the defaults this takes several minutes, most of them for TDA-linf.

    Args:
        sets: the trips by name; None for the paper's six synthetic sets.
        methods: the methods by name; None for the paper's.
        **runs: see `Runs`; every set gets the same streams of noise.

    Returns:
        As `measure_methods`, with the name of the set as first column `data`.
    """
    sets, methods = paper_sets() if sets is None else sets, paper_methods() if methods is None else methods
    return join_parts({name: measure_methods(trips, methods, **runs) for name, trips in sets.items()}, "data")


def figure_3(trips: TripCounts | None = None, *, also: Methods | None = None, **runs: Unpack[Runs]) -> pd.DataFrame:
    """Measure the largest error and the false discovery rate per stage, and the run time, on trips of a whole country. CURATOR ONLY.

    With the defaults this takes a few minutes.

    Args:
        trips: private; None for `made_up_country()`.
        also: further methods by name, beside the paper's.
        **runs: see `Runs`.

    Returns:
        As `measure_methods`: epsilon, method, measure, stage, between, mean, minimum, maximum.

    Raises:
        SettingError: `also` has a name that the figure has already, or `repeats` is less than 1.

    Source:
        Boninsegna, Silvestri, 2025, Figure 3, with the budgets, the delta, the 10 runs and the error bars (least and largest) of its
        Section 5. Like the paper's figure, this one leaves out VanillaGauss. The paper could not add noise to 65 million pairs; dpviz can:
        also=paper_methods(["VanillaGauss"]).

    Deviations:
        The census of Italian commuters is not included; a made-up country of the same size and about the same sparsity takes its place.
        On this country TDA-linf has no rows: its solver takes regions of at most 64 parts, and many provinces have more municipalities.
        Noise is exact. Its variance is the one that the paper's text states; the paper's published curves were made with twice that
        (see `TopDown`). Another machine and another solver (HiGHS for GLPK, our own projection for CLARABEL) run for other times. On pairs
        of municipalities SH errs about half as much as InfTDA, not a tenth as the paper says: at epsilon 1, SH leaves out noisy counts
        under 40 trips, so its largest error can hardly be under 40.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [900]}), regions=regions)
    >>> table = figure_3(trips, epsilons=[1], repeats=2, also={"fitted": dv.FittedTree(accounting="paper")})
    >>> table["method"].unique().tolist()
    ['SH', 'InfTDA', 'TDA-l2', 'TDA-linf', 'fitted']
    """
    return measure_methods(made_up_country() if trips is None else trips, _add_methods(METHODS[1:], also), **runs)


def figure_4(sets: Sets | None = None, *, also: Methods | None = None, **runs: Unpack[Runs]) -> pd.DataFrame:
    """Measure the largest error per stage on synthetic sets. CURATOR ONLY.

    Args:
        sets: the trips by name; None for `paper_sets()`.
        also: further methods by name, beside the paper's.
        **runs: see `Runs`.

    Returns:
        As `measure_sets`, with the measure "max_error" only: data, epsilon, method, measure, stage, between, mean, minimum, maximum.

    Raises:
        SettingError: `also` has a name that the figure has already, or `repeats` is less than 1.

    Source:
        Boninsegna, Silvestri, 2025, Figure 4, with the protocol of its Section 5.

    Deviations:
        The sets are drawn anew with the sizes of the paper's Table 1 (`dpviz.samples.trips.synthetic_trips`). TDA-linf is left out where
        a stage has more than 50,000 numbers for the solver. Noise as in `figure_3`.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [900]}), regions=regions)
    >>> table = figure_4({"two towns": trips}, epsilons=[1], repeats=2)
    >>> table[table["method"] == "InfTDA"][["stage", "between"]].to_numpy().tolist()
    [[0, 'all to all'], [1, 'all to town'], [2, 'town to town']]
    """
    table = measure_sets(sets, _add_methods(METHODS, also), **runs)
    return _select_measure(table, "max_error")


def figure_5(sets: Sets | None = None, *, also: Methods | None = None, **runs: Unpack[Runs]) -> pd.DataFrame:
    """Measure the false discovery rate per stage on the sparse synthetic sets; arguments as for `figure_4`. CURATOR ONLY.

    Returns:
        As `measure_sets`, with the measure "false_discovery" (percent) only.

    Raises:
        SettingError: `also` has a name that the figure has already, or `repeats` is less than 1.

    Source:
        Boninsegna, Silvestri, 2025, Figure 5, with the protocol of its Section 5; f_d counts the released pairs above 0 that have no trips.

    Deviations:
        As for `figure_4`. If nothing is released, the rate is 0.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [900]}), regions=regions)
    >>> table = figure_5({"two towns": trips}, epsilons=[1], repeats=2)
    >>> table[table["method"] == "SH"]["maximum"].tolist()
    [0.0, 0.0, 0.0]
    """
    sets = paper_sets(["sparse"]) if sets is None else sets
    table = measure_sets(sets, _add_methods(METHODS, also), **runs)
    return _select_measure(table, "false_discovery")


def figure_6(sets: Sets | None = None, *, also: Methods | None = None, **runs: Unpack[Runs]) -> pd.DataFrame:
    """Measure the run time of InfTDA and of its variants TDA-l2 and TDA-linf on synthetic sets; arguments as for `figure_4`.

    Returns:
        As `measure_sets`, with the measure "seconds" only, so that there is one row per set, method and epsilon.

    Raises:
        SettingError: `also` has a name that the figure has already, or `repeats` is less than 1.

    Source:
        Boninsegna, Silvestri, 2025, Figure 6, with the protocol of its Section 5.

    Deviations:
        As for `figure_4`. TDA-l2 uses no solver here and is about as fast as InfTDA; in the paper it uses the solver CLARABEL. The clock
        stops when the release is made, before its errors are measured.

    >>> import pandas as pd
    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> trips = dv.TripCounts.from_table(pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [900]}), regions=regions)
    >>> figure_6({"two towns": trips}, epsilons=[1], repeats=2)["method"].tolist()
    ['InfTDA', 'TDA-l2', 'TDA-linf']
    """
    table = measure_sets(sets, _add_methods(TOP_DOWN, also), **runs)
    return _select_measure(table, "seconds")


def _add_methods(names: Sequence[str], also: Methods | None) -> dict[str, TripMechanism]:
    """Build some of the paper's methods, and add others after them."""
    others = dict(also or {})
    if set(others) & set(names):
        raise SettingError(f"This figure already has methods with the names {', '.join(names)}: give your methods other names.")
    return {**paper_methods(names), **others}


def _select_measure(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the rows of one measure, numbered from 0."""
    return table[table["measure"] == measure].reset_index(drop=True)
