"""Publishing from Python: all or nothing, at the price that the ledger notes."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.data.counting.file_fingerprints import file_fingerprints
from tests.ledgers import is_empty

WORDS = {"name": "Homes", "curator": "A town"}
POINTS = dv.PointCounts.from_matrix([[9, 0], [0, 4]])
PLANE = dv.Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
TOWNS = dv.Regions.from_prefixes([f"{state}{town}" for state in "AB" for town in "0123"], lengths=[1, 2], levels=["state", "town"])
rng = np.random.default_rng(1)
STAYS = pd.DataFrame(rng.uniform(0, 16, (400, 2)), columns=["x", "y"]).assign(
    who=rng.integers(0, 40, 400), **{name: rng.choice(TOWNS.ids_of(2), 400) for name in ("region", "origin", "destination")}
)
PERSON = {"person": "who", "contributions": 3}


@pytest.fixture
def place(tmp_path):
    """A ledger, and what every call of these tests shares."""
    ledger = dv.Ledger.new(tmp_path / "ledger.sqlite")

    def publish(private=POINTS, mechanism=None, budget=None, **options):
        plain = {"dataset": "homes", "publication": WORDS, "folder": tmp_path / "out", "cap": dv.PureBudget(2), "ledger": ledger}
        return dv.publish(private, mechanism or dv.Quadtree(height=1), budget or dv.PureBudget("1.5"), **{**plain, **options})

    return publish, ledger, tmp_path


def test_a_release_is_paid_for_and_reads_back(place):
    publish, ledger, folder = place
    published = publish()
    assert dv.read_release(published.folder).receipt.total == dv.PureBudget("1.5")
    assert published.folder == folder / "out"
    assert ledger.remaining("homes") == dv.PureBudget("0.5")
    assert published.manifest["data_product"]["curator"] == "A town"


def test_whether_the_truth_was_looked_at_is_not_recorded_in_python_until_a_look_is_known(place):
    publish, ledger, folder = place
    release = dv.Quadtree(height=1).release(POINTS, dv.PureBudget(1), dv.Entropy.seeded(1))
    dv.evaluate(release, POINTS)
    assert is_empty(ledger)
    tenth = {"budget": dv.PureBudget("0.1")}
    assert publish(**tenth).manifest["implementation"]["tuning"] == {"truth_seen": "not recorded", "persons_searched": False}
    ledger.note_account_truth_seen("homes")
    assert publish(**tenth, folder=folder / "later").manifest["implementation"]["tuning"]["truth_seen"] is True
    assert dv.read_release(folder / "out").receipt.total == dv.PureBudget("0.1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"private": [1, 2]}, "counted data first"),
        ({"mechanism": dv.Quadtree}, r"such as dpviz\.\w+\(\), not Quadtree"),
        ({"mechanism": dv.FlatAreas()}, "for areas, and the data are points"),
        ({"budget": 1.5}, "such as dpviz.PureBudget"),
        ({"publication": "Homes"}, "dict of texts"),
        ({"publication": {"name": "Homes"}}, "needs the text 'curator'"),
        ({"publication": {**WORDS, "title": ""}}, "no text 'title'"),
        ({"cap": None}, "give a cap"),
        ({"cap": dv.PureBudget(1)}, "cap"),
        ({"folder": "/no/such/folder"}, "folder"),
        ({"files": ["missing.csv"]}, "missing.csv"),
    ],
)
def test_what_is_refused_spends_and_writes_nothing(place, options, words):
    publish, ledger, folder = place
    with pytest.raises(dv.DpvizError, match=words):
        publish(**options)
    assert ledger.accounts() == []
    assert not (folder / "out").exists()


def test_a_second_release_beyond_the_cap_is_refused_under_another_name_too(place):
    publish, ledger, folder = place
    (folder / "homes.csv").write_text("x,y\n1,2\n")
    publish(files=[folder / "homes.csv"])
    for other in (
        {"dataset": "homes"},
        {"dataset": "houses"},
        {"dataset": "houses", "private": dv.PointCounts.from_matrix([[1, 0], [0, 0]])},
    ):
        with pytest.raises(dv.RefusedError, match=r"0\.5"):
            publish(**other, files=[folder / "homes.csv"], folder=folder / "again")
    assert ledger.account("homes").draws == 1
    assert not (folder / "again").exists()


def count_file(kind, place, engine):
    """A function that counts rows through a file of them, which it writes first."""

    def count(rows):
        rows.to_csv(place, index=False)
        if kind == "points":
            return dv.read_points(place, domain=PLANE, engine=engine, **PERSON)
        if kind == "areas":
            return dv.read_areas(place, regions=TOWNS, region="region", engine=engine, **PERSON)
        return dv.read_trips(place, regions=TOWNS, engine=engine, **PERSON)

    return count


IN_MEMORY = {
    "arrays": lambda rows: dv.PointCounts.from_xy(rows["x"], rows["y"], domain=PLANE, person=rows["who"], contributions=3),
    "frame of points": lambda rows: dv.read_points(rows, domain=PLANE, **PERSON),
    "areas": lambda rows: dv.AreaCounts.from_table(rows, regions=TOWNS, **PERSON),
    "trips": lambda rows: dv.TripCounts.from_table(rows, regions=TOWNS, **PERSON),
}
FROM_FILES = [(kind, engine) for kind in ("points", "areas", "trips") for engine in ("numpy", "duckdb")]
MECHANISMS = {dv.PointCounts: dv.Quadtree(height=1), dv.AreaCounts: dv.FlatAreas(), dv.TripCounts: dv.TopDown(neighbours="add_remove")}


def refuse_once_more(place, count, *again):
    """Publish rows under one name up to their cap; then refuse them under other names, of the data and of persons, and take others."""
    publish, ledger, folder = place
    terms = {"budget": dv.ZcdpBudget(1), "cap": dv.ZcdpBudget(1), "person": "who"}

    def publish_as(name, rows):
        counts = count(rows)
        return publish(counts, MECHANISMS[type(counts)], dataset=name, folder=folder / name, **terms)

    publish_as("P", STAYS)
    for name, rows in zip(("Q", "R"), again, strict=True):
        with pytest.raises(dv.RefusedError, match="cap"):
            publish_as(name, rows)
    publish_as("S", STAYS.iloc[1:])
    assert [(account.name, account.draws) for account in ledger.accounts()] == [("P", 1), ("S", 1)]
    return counts_marks(count(again[0])), ledger


def counts_marks(counts):
    return [*counts.fingerprints.files, *counts.fingerprints.rows]


@pytest.mark.parametrize("count", IN_MEMORY.values(), ids=IN_MEMORY)
def test_one_table_of_persons_spends_one_cap_under_any_names(place, count):
    again = STAYS.sample(frac=1, random_state=2)
    marks, ledger = refuse_once_more(place, count, again, again.assign(who=again["who"].astype(str) + "!"))
    stored = "".join(str(row) for row in sqlite3.connect(ledger.path).execute("SELECT digest FROM mark"))
    assert len(marks) == 2
    assert not any(mark in stored for mark in marks)


@pytest.mark.parametrize(("kind", "engine"), FROM_FILES)
def test_a_file_of_persons_spends_one_cap_under_any_names(place, kind, engine):
    refuse_once_more(place, count_file(kind, place[2] / "stays.csv", engine), STAYS, STAYS)


def test_a_look_at_a_file_is_found_when_its_counts_are_published(place):
    publish, ledger, folder = place
    counts = count_file("points", folder / "stays.csv", "numpy")(STAYS)
    ledger.note_truth_seen(file_fingerprints([folder / "stays.csv"]))
    assert publish(counts, person="who").manifest["implementation"]["tuning"]["truth_seen"] is True


def test_a_sample_is_known_on_every_domain_and_to_the_command_line(place):
    publish, _, folder = place
    publish(dv.load_sample("la_residents", size=1_000))
    own = dv.samples.load.SAMPLES["la_residents"].domain
    coarse = dv.load_sample("la_residents", size=1_000, domain=dv.Domain(bounds=own.bounds, crs=own.crs, order=5))
    with pytest.raises(dv.RefusedError, match=r"0\.5"):
        publish(coarse, dataset="other", folder=folder / "again")
