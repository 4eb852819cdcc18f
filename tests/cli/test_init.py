"""`dpviz init`: a configuration from flags or from answers, which a dry run takes as it is."""

import io
import json
import tomllib

import pandas as pd
import pytest

from tests.ledgers import is_empty
from tests.publishing.configs import PEOPLE, POINTS, TOWNS, TRIPS, written

WHERE = ("--bounds", 0, 0, 16, 16, "--crs", "none")
RECORDS = (*WHERE, "--each-row", "--epsilon", "1/3")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with points, regions and trips, where the command is run."""
    for name, table in (("people", PEOPLE), ("towns", TOWNS), ("trips", TRIPS)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return tmp_path


def tables(folder, name="release.toml"):
    return tomllib.loads((folder / name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        (("people.csv", *RECORDS), "record"),
        (("people.csv", *WHERE, "--person", "who", "--contributions", 9, "--epsilon", 0.5), "person"),
        (
            (
                "trips.csv",
                "--each-row",
                "--regions",
                "towns.csv",
                "--levels",
                "state",
                "town",
                "--mechanism",
                "stability_histogram",
                "--epsilon",
                1,
            ),
            "trip",
        ),
    ],
)
def test_what_flags_say_runs_as_a_dry_run_and_the_ledger_is_not_touched(run, files, ledger, words, unit):
    code, out, _ = run("init", *words)
    assert (code, "--dry-run" in out) == (0, True)
    assert (files / "release.toml").read_text("utf-8").startswith("#:schema file:///")
    code, out, _ = run("release", "release.toml", "--dry-run", "--json")
    assert (code, json.loads(out)["unit"]) == (0, unit)
    assert [line.partition("]")[0] for line in json.loads(out)["unknown"]] == [
        f"Not known without [{name}" for name in ("dataset", "publication", "output")
    ]
    assert is_empty(ledger)


def test_trips_of_people_with_several_get_neighbours_that_fit_them(run, files):
    who = ("--person", "who", "--contributions", 3, "--regions", "towns.csv", "--levels", "state", "town", "--epsilon", 1)
    pd.read_csv("trips.csv", dtype=str).assign(who="a").to_csv("several.csv", index=False)
    assert run("init", "several.csv", *who)[0] == 0
    assert tables(files)["mechanism"] == {"key": "fitted_tree", "settings": {"neighbours": "add_remove"}}
    assert run("release", "release.toml", "--dry-run")[0] == 0


def test_points_in_a_file_of_regions_are_areas_and_are_called_so(run, files):
    code, out, _ = run("init", "people.csv", "--kind", "areas", "--each-row", "--crs", "none", "--regions", "towns.csv", "--epsilon", 1)
    assert (code, "a configuration of areas" in out, tables(files)["mechanism"]["key"]) == (0, True, "region_tree")
    assert "--regions" in run("init", "people.csv", "--kind", "areas", "--each-row", "--output", "other.toml")[2]


def test_with_a_cap_and_a_curator_it_can_be_published(run, files):
    assert run("init", "people.csv", *RECORDS, "--cap", 2, "--curator", 'The "town"')[0] == 0
    assert tables(files)["budget"] == {"epsilon": "1/3"}
    assert tables(files)["publication"]["curator"] == 'The "town"'
    assert run("release", "release.toml")[0] == 0
    assert (files / "people_release" / "manifest.json").exists()


def test_answers_on_a_terminal_take_the_place_of_flags(run, files, monkeypatch):
    answers = iter(["who", "9", "0 0 16, 16", "none", "", "", ""])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    code, _, err = run("init", "people.csv")
    assert (code, "Columns: lon, lat, who." in err) == (0, True)
    assert tables(files)["data"] == {"points": "people.csv", "x": "lon", "y": "lat", "person": "who", "contributions": 9}
    assert (tables(files)["domain"]["bounds"], tables(files)["budget"]) == ([0, 0, 16, 16], {"epsilon": 1})


def test_without_a_terminal_all_that_is_open_is_named_at_once_and_nothing_is_written(run, files):
    code, _, err = run("init", "people.csv")
    assert code == 2
    assert all(flag in err for flag in ("--person", "--each-row", "--bounds", "--crs", "--epsilon"))
    assert not (files / "release.toml").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--each-row", "--person", "who"), "contradict"),
        (("--mechanism", "quadtre"), "Did you mean 'quadtree'?"),
        (("--kind", "trips"), "do not fit trips"),
        (("--person", "wo", "--contributions", 1), "Did you mean 'who'?"),
        (("--bounds", 9, 0, 1, 16), "west"),
    ],
)
def test_what_does_not_fit_is_refused(run, files, words, text):
    code, _, err = run(
        "init", "people.csv", *(word for word in RECORDS if word != "--each-row"), *words, *(() if "--person" in words else ("--each-row",))
    )
    assert (code, text in err) == (2, True), err
    assert not (files / "release.toml").exists()


def test_no_configuration_is_overwritten_and_a_text_format_is_written_down(run, files):
    pd.DataFrame({"lon": [1.5], "lat": [2.5]}).to_csv(files / "comma.csv", sep=";", decimal=",", index=False)
    assert run("init", "comma.csv", *RECORDS)[0] == 0
    assert (tables(files)["data"]["separator"], tables(files)["data"]["decimal"]) == (";", ",")
    before = (files / "release.toml").read_text("utf-8")
    code, _, err = run("init", "people.csv", *RECORDS)
    assert (code, "none is overwritten" in err, (files / "release.toml").read_text("utf-8") == before) == (2, True, True)


@pytest.mark.parametrize("left_out", ["dataset", "publication", "output"])
def test_only_a_dry_run_works_without_who_pays_what_is_told_and_where_it_goes(run, tmp_path, left_out):
    path = written(tmp_path, {name: table for name, table in POINTS.items() if name != left_out})
    code, out, _ = run("release", path, "--dry-run")
    assert (code, f"Not known without [{left_out}]" in out, "Would spend" in out) == (0, True, left_out != "dataset")
    code, _, err = run("release", path)
    assert (code, f"lacks [{left_out}]" in err) == (2, True)
