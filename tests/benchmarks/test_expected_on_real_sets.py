"""What is expected of a release from a number of records alone, beside what it is on eight real sets.

pytest -n 0 -s -m benchmark tests/benchmarks/test_expected_on_real_sets.py

DPVIZ_REAL_SETS names a folder with the histograms of DPBench (checkin_256_256.npy, cabspottingE_256_256.npy, BeijingTaxiE_256_256.npy) and
New York's commuters of scikit-mobility. Sets that are not there are skipped; the others ship with dpviz.
"""

import os
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.publishing.guessed_records import MOST_RECORDS
from dpviz.publishing.public_guess import EVEN, TOWNS
from dpviz.publishing.simulated_errors import USEFUL

pytestmark = pytest.mark.benchmark
FEW = 5  # regions that are no promise
MOST_HOPEFUL = 2.0  # times that an error may be larger than it was said to be
RUNS, FOLDER = 4, Path(os.environ.get("DPVIZ_REAL_SETS", "real sets"))


def histogram(name):
    path = FOLDER / f"{name}_256_256.npy"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return dv.PointCounts.from_matrix(np.load(path).astype(np.int64))


def commuters():
    flows = FOLDER / "NY_commuting_flows_2011.csv"
    if not flows.exists():
        pytest.skip(f"{flows} is not there")
    counties = geopandas.read_file(FOLDER / "NY_counties_2011.geojson")
    regions = dv.Regions.from_table(counties, levels=["tile_id"])
    table = pd.read_csv(flows, dtype=str).astype({"flow": int})
    return dv.TripCounts.from_table(table.rename(columns={"flow": "count"}), regions=regions)


def departures():
    trips = dv.load_sample("us_flights")
    leaving = np.bincount(trips.origin, weights=trips.count, minlength=trips.regions.size(trips.regions.depth)).astype(np.int64)
    return dv.AreaCounts.from_counts(leaving, regions=trips.regions)


SETS = {
    "check-ins": (lambda: histogram("checkin"), dv.PathTree(), EVEN),
    "taxis in San Francisco": (lambda: histogram("cabspottingE"), dv.PathTree(), EVEN),
    "taxis in Beijing": (lambda: histogram("BeijingTaxiE"), dv.PathTree(), EVEN),
    "places of the United States": (lambda: dv.load_sample("us_places"), dv.PathTree(), TOWNS),
    "flights": (lambda: dv.load_sample("us_flights"), dv.FittedTree(), EVEN),
    "commuters of New York": (commuters, dv.FittedTree(), EVEN),
    "residents of counties": (lambda: dv.load_sample("us_residents"), dv.RegionTree(), TOWNS),
    "departures": (departures, dv.RegionTree(), TOWNS),
}


def measured(mechanism, counts, budget, levels):
    """Root mean square errors of some runs, by level."""
    runs = [mechanism.release(counts, budget, stream) for stream in dv.Entropy.seeded(4).spawn(RUNS)]
    return {level: float(np.sqrt(np.mean([(wrong(run, counts, level) ** 2).mean() for run in runs]))) for level in levels}


def wrong(run, counts, level):
    if counts.family == "points":
        return run.blocks(level) - counts.blocks(level)
    if counts.family == "areas":
        return run.count[run.nodes(level)] - counts.level_counts()[level]
    return evaluate_trips(run, counts).compare(level)["error"].to_numpy()


@pytest.mark.parametrize("name", SETS)
def test_no_level_is_off_by_more_than_twice_what_was_expected(name):
    make, mechanism, spread = SETS[name]
    counts = make()
    budget = dv.ApproxBudget(1, "1e-6") if mechanism.needs_delta else dv.PureBudget("1/2")
    total = min(int(counts.count.sum()), MOST_RECORDS)
    frame = counts.domain if counts.family == "points" else counts.regions
    table = dv.expected_errors(mechanism, frame, budget, records=total, spread=spread).by_level.set_index("level")
    real = measured(mechanism, counts, budget, [level for level in table.index if level or counts.family == "points"])
    print(f"\n{name}: {total:,} records, {spread}")
    for level, error in real.items():
        print(f"  level {level}: expected ± {table['error'][level]:.4g}, is ± {error:.4g}: {error / table['error'][level]:.2f}")
    assert max(error / table["error"][level] for level, error in real.items()) <= MOST_HOPEFUL


AREAS = {
    "residents of counties": lambda: dv.load_sample("us_residents"),
    "departures": departures,
    "residents in hexagons": lambda: dv.load_sample("la_hexagons"),
    "blocks of a made-up city": lambda: dv.load_sample("made_up_city"),
}


@pytest.mark.parametrize("name", AREAS)
def test_no_more_than_twice_as_many_regions_are_said_to_be_useful_as_are(name):
    areas = AREAS[name]()
    mechanism, finest, total = dv.RegionTree(), areas.regions.depth, min(int(areas.count.sum()), MOST_RECORDS)
    print(f"\n{name}: {total:,} records in {areas.regions.size(finest):,} regions")
    for epsilon in ("1/1000", "1/100", "1/10", "1"):
        budget = dv.PureBudget(epsilon)
        said = {
            spread: dv.expected_errors(mechanism, areas.regions, budget, records=total, spread=spread).by_level.set_index("level")[
                "useful"
            ][finest]
            for spread in (EVEN, TOWNS)
        }
        error = mechanism.release(areas, budget, dv.Entropy.seeded(4)).stddev(finest)
        useful = int((error <= USEFUL * areas.level_counts()[finest] * total / areas.count.sum()).sum())
        print(f"  ε {epsilon}: expected {said[EVEN]:,.0f} if evenly, {said[TOWNS]:,.0f} as towns are; are {useful:,}")
        assert said[TOWNS] <= MOST_HOPEFUL * useful + FEW
