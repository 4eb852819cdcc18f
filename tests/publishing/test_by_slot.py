"""Configurations of counts by place and slot: read back equal, frames as declared, and a publication that is read back by slot."""

import numpy as np
import pandas as pd
import pytest

import dpviz as dv
from dpviz.errors import DpvizError
from dpviz.publishing.code import write_data
from dpviz.publishing.config import from_tables, read_config, to_toml
from dpviz.publishing.kept import _frame_facts
from dpviz.publishing.simulated_errors import count_readable
from dpviz.space.categories import Categories
from dpviz.space.cross import Cross
from dpviz.space.summed import Summed
from dpviz.view.report import report_html
from tests.publishing.configs import FLOWS, TOWNS, changed, data_of, frame_of
from tests.publishing.test_code import made_by

HOURS = {"times": "hour", "zone": "Europe/Berlin"}
BY_HOUR = {
    **FLOWS,
    "data": {"points": "visits.csv", "region": "town", "slot": "at", "person": "who", "contributions": 4, "per_slot": 1, "count": "none"},
    "categories": HOURS,
    "mechanism": {"key": "cross_tree"},
    "dataset": {"name": "visits", "cap_epsilon": 2, "cap_delta": 1e-5},
}
KINDS = {
    "hours": (HOURS, Categories.hours("Europe/Berlin")),
    "days by name": ({"times": "weekday", "other": "holiday"}, Categories.weekdays().with_other("holiday")),
    "months": ({"times": "month", "first": "2026-01", "last": "2026-12", "zone": "UTC"}, Categories.months("2026-01", "2026-12", "UTC")),
    "bins": ({"bins": [0, 6, 18, 65], "coarser": {"group": [0, 18, 65]}}, Categories.bins([0, 6, 18, 65], coarser={"group": [0, 18, 65]})),
    "listed values": ({"values": ["car", "bus", "train"], "other": "other"}, Categories.values(["car", "bus", "train"]).with_other()),
    "sums": ({"sum_between": [0, 60], "step": 0.5}, Summed(low=0, high=60, step=0.5)),
    "a file": (
        {"file": "modes.csv", "levels": ["kind", "mode"]},
        Categories.from_table(pd.DataFrame({"kind": ["road", "road", "rail"], "mode": ["car", "bus", "train"]}), levels=["kind", "mode"]),
    ),
}


def put_files(folder) -> None:
    rng = np.random.default_rng(1)
    at = pd.Timestamp("2026-07-01") + pd.to_timedelta(rng.integers(0, 10_000, 600), unit="min")
    visits = pd.DataFrame({"town": rng.choice(list("abc"), 600), "at": at.strftime("%Y-%m-%d %H:%M"), "who": rng.integers(0, 200, 600)})
    visits.to_csv(folder / "visits.csv", index=False)
    TOWNS.to_csv(folder / "towns.csv", index=False)
    pd.DataFrame({"kind": ["road", "road", "rail"], "mode": ["car", "bus", "train"]}).to_csv(folder / "modes.csv", index=False)


@pytest.mark.parametrize("kind", KINDS)
def test_categories_read_back_equal_and_make_the_declared_frame(tmp_path, kind):
    part, categories = KINDS[kind]
    put_files(tmp_path)
    tables = changed(BY_HOUR, "data.per_slot", None) if kind == "sums" else BY_HOUR
    config = from_tables(changed(tables, "categories", part), base=tmp_path)
    (tmp_path / "a.toml").write_text(to_toml(config), "utf-8")
    again = read_config(tmp_path / "a.toml")
    assert again == config
    frame = frame_of(again)
    assert isinstance(frame, Cross)
    assert frame.categories == categories
    assert _frame_facts(frame) == _frame_facts(Cross(frame.regions, categories)) != _frame_facts(frame.regions)


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_counts_the_same(tmp_path, monkeypatch, kind):
    put_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    part, categories = KINDS[kind]
    data = {**BY_HOUR["data"], "slot": "who" if kind == "sums" else "at" if part.get("zone") else "town"}
    if kind == "sums":
        del data["per_slot"]
    else:
        part = {"other": "else", **part}
    config = from_tables(changed(changed(BY_HOUR, "categories", part), "data", data))
    made = made_by(f"import dpviz as dv\n{write_data(config)}")
    assert made["categories"] == (categories if "other" not in part or categories.other else categories.with_other("else"))
    assert (made["areas"].frame, made["areas"].per_slot) == (frame_of(config), data.get("per_slot"))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("categories", None, "[categories] and [data] slot belong together"),
        ("data.slot", None, "per_slot is the most records"),
        ("data.person", None, "per_slot is the most records"),
        ("data.per_slot", 0, "at least 1"),
        ("categories", {"times": "minute"}, "[categories] times"),
        ("categories", {"times": "month"}, "first and last"),
        ("categories", {"times": "hour", "bins": [0, 1]}, "exactly one of times, bins, values, sum_between, file"),
        ("categories", {"values": ["car"], "zone": "UTC"}, "zone belongs to times"),
        ("categories", {"values": ["car", "bus", "car"]}, "duplicate id: each id of the last level has one row."),
        ("categories", {"bins": [0, 1], "zone": "UTC"}, "zone belongs to times"),
        ("categories", {"times": "hour", "zone": "Mars"}, "no such time zone"),
        ("categories", {"bins": [1, 0]}, "each larger than the one before"),
        ("categories", {"sum_between": [0]}, "a lower and an upper bound"),
        ("categories", {"sum_between": [9, 0]}, "a lower bound that is below"),
        ("categories", {"sum_between": [0, 9], "other": "x"}, "no slot for other records"),
        ("categories", {"sum_between": [0, 9]}, "per_slot has no meaning"),
        ("categories", {"bins": [0, 1], "step": 1}, "step belongs to sum_between"),
        ("regions", None, "[domain]"),
    ],
)
def test_errors_name_the_fault(path, value, words):
    with pytest.raises(DpvizError) as refusal:
        from_tables(changed(BY_HOUR, path, value))
    assert words in str(refusal.value)


def test_a_file_without_a_column_is_named(tmp_path):
    put_files(tmp_path)
    config = from_tables(changed(BY_HOUR, "categories", {"file": "modes.csv", "levels": ["sort"]}), base=tmp_path)
    with pytest.raises(DpvizError, match=r"\[categories\] file 'modes.csv'.*'sort'"):
        frame_of(config)


def test_data_are_counted_as_declared(tmp_path):
    put_files(tmp_path)
    (tmp_path / "a.toml").write_text(to_toml(from_tables(BY_HOUR)), "utf-8")
    areas = data_of(read_config(tmp_path / "a.toml")).data
    table = pd.read_csv(tmp_path / "visits.csv", dtype={"town": str})
    assert (areas.contributions, areas.per_slot, areas.entries) == (4, 1, 24)
    most = table.assign(hour=table["at"].str[11:13]).drop_duplicates(["who", "hour"]).groupby("who").size().clip(upper=4).sum()
    assert areas.count.sum() == most


def test_a_publication_by_slot_is_paid_written_and_read_back(tmp_path):
    put_files(tmp_path)
    regions = dv.Regions.from_table(TOWNS, levels=["state", "town"])
    slots = {"categories": Categories.hours("UTC"), "slot": "at", "unit": "record"}
    areas = dv.read_areas(tmp_path / "visits.csv", regions=regions, region="town", **slots)
    release = dv.CrossTree().release(areas, dv.ApproxBudget(1, "1e-6"), dv.Entropy.system())
    texts = dv.Publication(name="Visits", curator="A town", description="Made up.", region="", intended_use="", draws=1, truth_seen=False)
    folder = dv.write_release(release, tmp_path / "out", dv.describe(release, texts), formats=["geoparquet", "csv", "geojson"])
    again = dv.read_release(folder)
    assert again.same_as(release)
    assert again.answer(["A"], slots=["morning"]) == release.answer(["A"], slots=["morning"])
    assert b"Times were read on the clocks of UTC" in report_html(release, dv.read_manifest(folder))
    long = pd.read_csv(folder / "by_slot.csv")
    assert len(long) == release.cross_count.size
    fine = long[(long.level == 2) & (long.slot_level == 2)]
    np.testing.assert_allclose(fine["count"], release.to_frame(("town", "hour"))["count"])


def test_means_are_read_back_as_they_were_released(tmp_path):
    regions = dv.Regions.from_table(TOWNS, levels=["state", "town"])
    people = pd.DataFrame({"region": list("abc") * 200, "age": np.arange(600) % 90})
    values = dv.Summed(low=0, high=100, step=0.5)
    areas = dv.AreaCounts.from_table(people, regions=regions, categories=values, slot="age", count="none")
    release = dv.CrossTree().release(areas, dv.PureBudget(1), dv.Entropy.system())
    texts = dv.Publication(name="Ages", curator="A town", description="Made up.", region="", intended_use="", draws=1, truth_seen=False)
    folder = dv.write_release(release, tmp_path / "out", dv.describe(release, texts), formats=["geoparquet", "csv"])
    again = dv.read_release(folder)
    assert isinstance(again, dv.MeanRelease)
    assert again.same_as(release)
    pd.testing.assert_frame_equal(again.means("town"), release.means("town"))
    long = pd.read_csv(folder / "means.csv")
    assert long["level"].tolist() == release.hierarchy.depth.tolist()
    np.testing.assert_allclose(long["mean"][long["level"] == 2], release.means()["mean"])
    assert "never outside the bounds" in (folder / "manifest.json").read_text("utf-8")


def test_errors_to_expect_of_made_up_records_know_the_bound_of_a_slot(tmp_path):
    put_files(tmp_path)
    (tmp_path / "a.toml").write_text(to_toml(from_tables(BY_HOUR)), "utf-8")
    areas = data_of(read_config(tmp_path / "a.toml")).data
    noise, made_up = (dv.expected_errors(dv.CrossTree(), areas, dv.ZcdpBudget("0.1"), records=records) for records in (None, 5000))
    assert noise.by_level["stddev"].tolist() == made_up.by_level["stddev"].tolist()
    assert noise.receipt.steps == made_up.receipt.steps
    noise_alone = dv.CrossTree().expected_pair_errors(areas.frame, dv.ZcdpBudget("0.1"), 4, 1)
    assert noise.by_level["of"].tolist() == [error.of for error in noise_alone]
    assert noise.by_level["stddev"].tolist() == [error.stddev for error in noise_alone]
    assert noise.note.startswith("Noise is measured on each pair")
    assert {"slot_level", "readable"}.isdisjoint(dv.expected_errors(dv.RegionTree(), areas, dv.ZcdpBudget("0.1")).by_level)


def test_a_profile_is_readable_where_an_average_slot_is_useful():
    stddev, count = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 0.0]]), np.array([[17, 1], [0, 100], [0, 0]])
    assert count_readable(stddev, count) == 3  # noise of 3.5 against averages of 9 and 50; an exact 0 is one
    assert count_readable(stddev, count - 1) == 1
