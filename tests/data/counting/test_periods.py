"""Rows of one period: each row counts in at most one month, other rows change nothing, and the same records of a person are kept."""

import io
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from dpviz.data.counting.files import read_areas, read_points, read_trips
from dpviz.errors import DomainError, InputError, SettingError
from dpviz.space.categories import Categories
from dpviz.space.domain import Domain
from dpviz.space.periods import Period
from dpviz.space.regions import Regions

REGIONS = Regions.from_table(pd.DataFrame({"district": ["A", "A", "B"], "tract": ["a", "b", "c"]}), levels=["district", "tract"])
PLANE = Domain(bounds=(0.0, 0.0, 16.0, 16.0), crs=None, order=4)
BERLIN = "Europe/Berlin"
MONTHS = [f"2026-{month:02}" for month in range(1, 13)]


def visits(seed: int = 1, rows: int = 300, people: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    at = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 365 * 24 * 60, rows), unit="min")
    ids = {name: rng.choice(["a", "b", "c"], rows) for name in ("region", "to")}
    return pd.DataFrame({**ids, "at": at, "who": rng.integers(0, people, rows), "lon": rng.random(rows) * 16, "lat": 5.5, "x2": 1.5})


READ = {
    "points": lambda table, **options: read_points(table, domain=PLANE, count="none", **options),
    "areas": lambda table, **options: read_areas(table, regions=REGIONS, region="region", count="none", **options),
    "slots": lambda table, **options: read_areas(
        table, regions=REGIONS, region="region", count="none", categories=Categories.hours(BERLIN), slot="at", **options
    ),
    "trips": lambda table, **options: read_trips(table, regions=REGIONS, origin="region", destination="to", count="none", **options),
}


def during(name, **options):
    return Period(**{"name": name, "time": "at", "zone": BERLIN} | options)


def table_of(data):
    """The counts as a dict, by place."""
    return dict(zip(zip(*(getattr(data, place).tolist() for place in data.places), strict=True), data.count.tolist(), strict=True))


def upload(entries):
    lines = "".join(f"a,{entry}\n" for entry in entries)
    file = io.BytesIO(f"region,at\n{lines}".encode())
    file.name = "visits.csv"
    return file


def months_of(entry, months, zone=BERLIN, beside=()):
    """The months in which a row with this entry counts."""
    return [
        month
        for month in months
        if READ["areas"](upload([entry, *beside]), during=during(month, zone=zone), bad_rows="drop").count.sum()
        > (READ["areas"](upload(beside), during=during(month, zone=zone), bad_rows="drop").count.sum() if beside else 0)
    ]


EDGES = {
    "2026-10-31 23:59": "2026-10",
    "2026-10-31T23:59:59.999999999": "2026-10",
    "2026-11-01": "2026-11",
    "2026-11-01 00:00": "2026-11",
    "2026-10-31T22:59:59Z": "2026-10",
    "2026-10-31T23:00:00Z": "2026-11",
    "2026-11-01T00:30:00+02:00": "2026-10",
    "2026-10-31 19:00:00-04:00": "2026-11",
    " 2026-11-30 23:59 ": "2026-11",
    "2026-11-30T22:59:59.999999Z": "2026-11",
    "2026-11-30T23:00Z": "2026-12",
    "2026-10-25 02:30": "2026-10",
    "": None,
    "2026-11": None,
    "01.11.2026": None,
    "2026-11-31": None,
    "1793487600": None,
}


@pytest.mark.parametrize("entry", EDGES)
def test_a_time_lies_in_one_month_or_in_none_whatever_stands_beside_it(entry):
    around = ["2026-09", "2026-10", "2026-11", "2026-12"]
    wanted = [month for month in around if month == EDGES[entry]]
    assert months_of(entry, around) == wanted
    assert months_of(entry, around, beside=["2026-11-05 10:00", "2026-10-05T10:00:00+01:00", "nonsense"]) == wanted


@pytest.mark.parametrize(
    ("entry", "month"),
    [
        ("2026-11", "2026-11"),
        (" 2026-11 ", "2026-11"),
        ("2026-11-01", None),
        ("11", None),
        ("202611", None),
        ("2026-1", None),
        ("2026‑11", None),
    ],
)
def test_without_a_zone_an_entry_is_a_month(entry, month):
    assert months_of(entry, MONTHS, zone=None) == ([] if month is None else [month])


def test_random_times_with_offsets_lie_in_the_month_of_the_zone():
    rng = np.random.default_rng(3)
    edges = [datetime(2026, month, 1, tzinfo=ZoneInfo(BERLIN)) for month in range(2, 13)]
    times = [edges[rng.integers(11)] + timedelta(seconds=int(rng.integers(-90, 90))) for _ in range(400)]
    zones = [ZoneInfo(name) for name in ("UTC", "Asia/Tokyo", "America/New_York")]
    entries = [time.astimezone(zones[rng.integers(3)]).isoformat() for time in times]
    counted = {month: int(READ["areas"](upload(entries), during=during(month)).count.sum()) for month in MONTHS}
    assert counted == {month: sum(f"{time:%Y-%m}" == month for time in times) for month in MONTHS}


@pytest.mark.parametrize("family", READ)
@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize("persons", [{}, {"person": "who", "contributions": 2, "key": b"k"}], ids=["records", "persons"])
def test_every_engine_counts_of_a_month_what_its_rows_alone_are(tmp_path, family, engine, persons):
    visits().to_parquet(tmp_path / "all.parquet", index=False)
    visits().to_csv(tmp_path / "all.csv", index=False)
    months = 0
    for month in MONTHS[::4]:
        own = visits()[visits()["at"].dt.strftime("%Y-%m") == month]
        expected = READ[family](own, **persons)
        for kind in ("csv", "parquet"):
            found = READ[family](tmp_path / f"all.{kind}", engine=engine, during=during(month), **persons)
            assert table_of(found) == table_of(expected)
            assert (found.outside, found.bad, found.over) == (len(visits()) - len(own), 0, expected.over)
            assert found.during == during(month)
        months += int(expected.count.sum())
    assert months > 0


def test_quarters_and_years_are_their_months():
    counts = {name: READ["areas"](visits(), during=during(name)).count.sum() for name in (*MONTHS, "2026-Q1", "2026-Q4", "2026")}
    assert counts["2026-Q1"] == sum(counts[month] for month in MONTHS[:3])
    assert counts["2026-Q4"] == sum(counts[month] for month in MONTHS[9:])
    assert counts["2026"] == len(visits())


@pytest.mark.parametrize("family", READ)
def test_what_a_person_has_in_a_month_changes_that_month_alone(family):
    """Brute force: any one person in any one month is removed; all other months, bounded, are the same to the last count."""
    table = visits(rows=120, people=6)
    month_of = table["at"].dt.strftime("%Y-%m")

    def counts(rows, month):
        return table_of(READ[family](rows, during=during(month), person="who", contributions=2, key=b"k"))

    whole, changed = {month: counts(table, month) for month in MONTHS}, 0
    for person, month in table[["who"]].assign(month=month_of).drop_duplicates().itertuples(index=False):
        rest = table[(table["who"] != person) | (month_of != month)]
        here = counts(rest, month)
        moved = sum(abs(here.get(place, 0) - whole[month].get(place, 0)) for place in {*here, *whole[month]})
        assert moved <= 2
        changed += moved > 0
        others = [other for other in MONTHS if other != month][:: 4 if family != "areas" else 1]
        assert all(counts(rest, other) == whole[other] for other in others)
    assert changed > 20


def test_with_one_key_a_person_who_does_the_same_each_month_keeps_the_same():
    rows = [(region, f"{month}-1{day} 08:00", who) for month in MONTHS for who in range(30) for day, region in enumerate("abcab")]
    table = pd.DataFrame(rows, columns=["region", "at", "who"])

    def kept(**key):
        found = (READ["areas"](table, during=during(month), person="who", contributions=2, **key) for month in MONTHS)
        return {tuple(data.count.tolist()) for data in found}

    assert len(kept(key=b"secret")) == 1
    assert len(kept()) > 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"time": "when"}, InputError),
        ({"name": "2026-13"}, SettingError),
        ({"name": "2026-Q5"}, SettingError),
        ({"zone": "Berlin"}, DomainError),
    ],
)
def test_a_period_that_is_none_or_a_column_that_is_missing_is_refused(change, error):
    with pytest.raises(error):
        READ["areas"](visits(), during=during(**{"name": "2026-11"} | change))
