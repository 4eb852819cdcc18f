"""Metrics of releases of areas against slow definitions; studies compare mechanisms on levels."""

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.errors import BudgetError, DomainError, SettingError
from dpviz.evaluation.area_metrics import evaluate_areas
from tests.area_cases import areas_of, records_of, true_sums
from tests.trip_cases import regular

RELEASES = {"flat": dv.FlatAreas(), "tree": dv.RegionTree(), "non-negative": dv.RegionTree(nonnegative=True)}


def slow_row(release, areas, level: int) -> dict:
    """Region by region."""
    ids, truth, count = release.regions.ids_of(level), true_sums(areas, level).tolist(), release.count[release.nodes(level)].tolist()
    error = [abs(out - true) for out, true in zip(count, truth, strict=True)]
    low, high = release.interval(level)
    pairs = list(zip(truth, count, strict=True))
    return {
        "level": level,
        "name": "the whole" if level == 0 else release.regions.levels[level - 1],
        "regions": len(truth),
        "mae": sum(error) / len(error),
        "rmse": (sum(each**2 for each in error) / len(error)) ** 0.5,
        "expected": np.sqrt(np.mean(release.stddev(level) ** 2)),
        "relative": 100 * np.mean([each / max(true, 20) for each, true in zip(error, truth, strict=True)]),
        "empty": sum(true == 0 for true in truth),
        "false_positives": sum(true == 0 and out >= 0.5 for true, out in pairs),
        "false_negatives": sum(true > 0 and out < 0.5 for true, out in pairs),
        "worst": ids[error.index(max(error))],
        "max_error": max(error),
        "narrow": 100 * np.mean([b - a < out / 2 for a, b, out in zip(low, high, count, strict=True)]),
    }


@pytest.mark.parametrize("mechanism", RELEASES)
@pytest.mark.parametrize("records", [0, 300])
def test_every_figure_of_a_level_is_that_of_its_regions(mechanism, records):
    areas = records_of(records)
    release = RELEASES[mechanism].release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
    found = evaluate_areas(release, areas)
    pd.testing.assert_frame_equal(found.by_level, pd.DataFrame([slow_row(release, areas, level) for level in range(4)]))
    for level in range(4):
        np.testing.assert_array_equal(found.truth[level], true_sums(areas, level))
    assert "curator only" in repr(found)


def test_counts_of_other_regions_are_refused():
    release = dv.FlatAreas().release(records_of(10), dv.PureBudget(1), dv.Entropy.seeded(1))
    with pytest.raises(DomainError, match="same regions"):
        evaluate_areas(release, areas_of(regular(2), [1, 2]))


MECHANISMS = {"tree": dv.RegionTree(), "flat": dv.FlatAreas()}


def study(**options):
    return dv.Study(data=dv.load_sample("made_up_city"), public=True, mechanisms=MECHANISMS, epsilons=("0.2", 1), repeats=5, **options)


def test_a_study_compares_mechanisms_level_by_level():
    table = dv.tidy(study(workloads=("levels",)), dv.compare(study(workloads=("levels",))))
    assert len(table) == 2 * 2 * 5 * 3
    assert set(table["workload"]) == {"district", "tract", "block"}
    errors = table.groupby(["label", "epsilon", "workload"])["mae"].mean()
    assert errors["tree", 0.2, "district"] < 0.5 * errors["flat", 0.2, "district"]
    assert errors["flat", 0.2, "block"] < errors["tree", 0.2, "block"]
    assert {"false_positives", "false_negatives", "max_error"} <= set(table.columns)


def test_a_study_asks_for_the_finest_level_by_default_and_refuses_others():
    assert study().questions.names() == ["block"]
    with pytest.raises(SettingError, match="no workload 'county'"):
        study(workloads=("county",))
    with pytest.raises(SettingError, match="twice"):
        study(workloads=("block", "block"))
    with pytest.raises(BudgetError, match="custom split needs 3 weights"):
        dv.Study(
            data=dv.load_sample("made_up_city"),
            public=True,
            mechanisms={"tree": dv.RegionTree(split="custom", weights=(1, 2))},
            epsilons=(1,),
        )
    assert study().fingerprint != study(seed=1).fingerprint
