"""A year of releases from the command line and in Python, and attempts to get more of it than was paid for."""

import json
import re
import subprocess
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w

import dpviz as dv
from dpviz.errors import InputError, RefusedError, SettingError
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.series import Series
from dpviz.publishing import publish as steps
from dpviz.publishing.code import write_data
from dpviz.publishing.config import from_tables, read_config, to_toml
from dpviz.release.files import read_manifest
from tests.publishing.configs import changed
from tests.publishing.test_code import made_by

MONTHS = [f"2026-{month:02}" for month in range(1, 13)]
SERIES = {"protects": "person-period", "time": "at", "zone": "Europe/Berlin"}
VISITS = {
    "data": {"points": "visits.csv", "region": "tract", "person": "who", "contributions": 2, "count": "none"},
    "regions": {"file": "tracts.csv", "levels": ["county", "tract"]},
    "mechanism": {"key": "region_tree"},
    "budget": {"epsilon": 1},
    "dataset": {"name": "visits", "cap_epsilon": 1, "series": SERIES},
    "publication": {"name": "Visits", "curator": "The town", "description": "By month."},
    "output": {"folder": "out", "formats": ["geoparquet"]},
}
RECORDS = VISITS | {
    "data": {"points": "visits.csv", "region": "tract", "count": "none"},
    "dataset": {"name": "visits", "unit": "record", "cap_epsilon": 1, "series": SERIES | {"protects": "record"}},
}
TOGETHER = VISITS | {"budget": {"epsilon": "1/12"}, "dataset": {"name": "visits", "cap_epsilon": 1, "series": {"protects": "person"}}}


def write_files(folder, tables=VISITS, name="visits.toml", seed=1):
    """Visits of a year and a month, and the configuration of their releases."""
    rng = np.random.default_rng(seed)
    at = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 396 * 24 * 60, 240), unit="min")
    table = pd.DataFrame(
        {"tract": rng.choice(["A1", "A2", "B1"], 240), "at": at.strftime("%Y-%m-%d %H:%M"), "who": rng.integers(0, 20, 240)}
    )
    table.to_csv(folder / "visits.csv", index=False)
    pd.DataFrame({"county": ["A", "A", "B"], "tract": ["A1", "A2", "B1"]}).to_csv(folder / "tracts.csv", index=False)
    (folder / name).write_text(tomli_w.dumps(tables), "utf-8")
    return folder / name


@pytest.fixture
def release(run, tmp_path):
    """`release(period)` releases a period from the command line, and gives its exit code, stdout and stderr."""

    def made(period, config="visits.toml", *words):
        folder = tmp_path / f"out {len(list(tmp_path.iterdir()))}"
        return run("release", tmp_path / config, "--period", period, "--output", folder, *words)

    return made


# A year, and one month more.


@pytest.mark.parametrize(
    ("tables", "spent", "said"),
    [
        (VISITS, 12, "Somebody with records in each of all 12 months loses up to epsilon 12."),
        (RECORDS, 12, "Somebody with one record in each of all 12 months loses up to epsilon 12, and more with several in a month"),
        (TOGETHER, 1, "Each month may spend an equal share, epsilon 0.0833333333; its noise is 12 times that of the whole cap."),
    ],
)
def test_a_year_is_said_in_words_before_its_first_payment_and_has_twelve_months(release, ledger, tmp_path, tables, spent, said):
    write_files(tmp_path, tables)
    months = [MONTHS[10], *MONTHS[:10], MONTHS[11]]
    for number, month in enumerate(months):
        code, _, err = release(month)
        assert code == 0, err
        assert (said in err) == (number == 0)
        if said in err:
            assert err.index(said) < err.index("Spent")
        write_files(tmp_path, tables, seed=2 + number)  # the file of the next month is another one
    account = ledger.account("visits")
    assert (account.draws, account.spent["epsilon"]) == (12, spent)
    for month, reason in (("2026-11", "The cap of 2026-11 in 'visits' would be exceeded"), ("2027-01", "would be one more")):
        code, _, err = release(month)
        assert (code, reason in err) == (1, True)
    assert ledger.account("visits") == account


@pytest.mark.parametrize("spelling", ["2026-11 ", "2026/11", "26-11", "November", "2026-Q4"])
def test_a_second_november_under_another_spelling_is_refused(release, ledger, tmp_path, spelling):
    write_files(tmp_path)
    assert release("2026-11")[0] == 0
    code, _, err = release(spelling)
    assert (code, "is written as 2026-11" in err) == (2, True)
    assert ledger.account("visits").draws == 1


def test_a_period_is_named_where_there_is_a_series_and_nowhere_else(run, tmp_path):
    write_files(tmp_path)
    assert "say which one is released with --period" in run("release", tmp_path / "visits.toml")[2]
    write_files(tmp_path, VISITS | {"dataset": {"name": "visits", "cap_epsilon": 1}}, "once.toml")
    assert "has no [dataset.series]" in run("release", tmp_path / "once.toml", "--period", "2026-11")[2]


OTHER_SERIES = {
    "no series": None,
    "another column": SERIES | {"time": "booked"},
    "another zone": SERIES | {"zone": "Asia/Tokyo"},
    "more months": SERIES | {"periods": 24},
    "all months together": SERIES | {"protects": "person"},
}


@pytest.mark.parametrize("change", OTHER_SERIES)
def test_no_change_of_the_series_gets_a_month_for_nothing(run, release, ledger, tmp_path, change):
    write_files(tmp_path)
    assert release("2026-11")[0] == 0
    series = OTHER_SERIES[change]
    dataset = {"name": "visits", "cap_epsilon": 1} | ({} if series is None else {"series": series})
    config = write_files(tmp_path, VISITS | {"dataset": dataset})
    table = pd.read_csv(tmp_path / "visits.csv")
    table.assign(booked=table["at"]).to_csv(tmp_path / "visits.csv", index=False)
    code, _, err = run("release", config, *([] if series is None else ["--period", "2026-12"]))
    assert (code, "paid from the command line" in err or "its series is" in err) == (1, True)
    assert ledger.account("visits").draws == 1


def test_the_same_file_under_a_second_name_is_one_account(release, ledger, tmp_path):
    """The file is known; a later file under another name is a new dataset, as for every account."""
    write_files(tmp_path)
    assert release("2026-11")[0] == 0
    write_files(tmp_path, VISITS | {"dataset": {"name": "tours", "cap_epsilon": 1, "series": SERIES}}, "tours.toml")
    code, _, err = release("2026-11", "tours.toml")
    assert (code, "The cap of 2026-11 in 'visits' would be exceeded" in err) == (1, True)
    assert release("2026-12", "tours.toml")[0] == 0
    assert [(account.name, account.draws) for account in ledger.accounts()] == [("visits", 2)]


@pytest.mark.parametrize("tables", [VISITS, RECORDS])
def test_a_month_that_was_paid_is_known_in_a_file_that_has_grown_under_a_second_name(release, ledger, tmp_path, tables):
    """By the counts of the month, since its rows and what is kept of each person are the same. A month that is new there is not known."""
    write_files(tmp_path, tables)
    assert release("2026-11")[0] == 0
    table = pd.read_csv(tmp_path / "visits.csv")
    more = table.assign(at=table["at"].str.replace("2026", "2028")).sample(50, random_state=1)
    pd.concat([more, table]).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "tours.toml").write_text(tomli_w.dumps(changed(tables, "dataset.name", "tours")), "utf-8")
    code, _, err = release("2026-11", "tours.toml")
    assert (code, "The cap of 2026-11 in 'visits' would be exceeded" in err) == (1, True)
    assert [account.name for account in ledger.accounts()] == ["visits"]


def test_rows_that_are_moved_to_another_month_pay_there_again_from_that_months_share_alone(release, ledger, tmp_path):
    """A second draw of November's rows, relabelled as December, is December's: it is paid, once, and both releases say what that means."""
    write_files(tmp_path)
    assert release("2026-11")[0] == 0
    text = (tmp_path / "visits.csv").read_text("utf-8")
    (tmp_path / "visits.csv").write_text(text.replace("2026-12-", "2025-12-").replace("2026-11-", "2026-12-"), "utf-8")
    assert release("2026-12")[0] == 0
    assert release("2026-12")[0] == 1
    account = ledger.account("visits")
    assert account.spent_by_period == {month: {"epsilon": Fraction(1), "delta": Fraction(0)} for month in MONTHS[10:]}


# What a release says.


def test_manifest_receipt_and_report_say_what_the_series_protects(release, tmp_path):
    write_files(tmp_path, RECORDS | {"mechanism": {"key": "region_tree"}, "budget": {"epsilon": "1/3"}})
    printed = json.loads(release("2026-11", "visits.toml", "--json")[1])
    manifest = read_manifest(printed["folder"])
    assert manifest["dataset"]["series"] == {
        "name": "2026-11",
        "kind": "month",
        "periods": 12,
        "protects": "record",
        "time": "at",
        "zone": "Europe/Berlin",
        "in_all": {"epsilon": {"exact": "12", "decimal": 12.0}, "delta": {"exact": "0", "decimal": 0.0}, "rho": None},
    }
    assert (manifest["dataset"]["spent"]["epsilon"]["exact"], manifest["dataset"]["cap"]["epsilon"]["exact"]) == ("1/3", "1")
    moved = "what moves to another month changes two releases"
    assert moved in manifest["privacy"]["unit_definition"]
    assert moved in dv.read_release(printed["folder"]).receipt.unit_definition
    html = (tmp_path / printed["folder"] / "report.html").read_text("utf-8")
    assert moved in html
    assert "Somebody with one record in every month loses at most" in html


BOUNDED = RECORDS | {
    "data": {"trips": "visits.csv", "origin": "tract", "destination": "to", "count": "none"},
    "mechanism": {"key": "top_down", "settings": {"neighbours": "bounded"}},
    "budget": {"epsilon": 1, "delta": 1e-6},
    "dataset": {"name": "visits", "unit": "trip", "cap_epsilon": 1, "cap_delta": 1e-6, "series": SERIES | {"protects": "record"}},
}


def test_exact_totals_of_months_are_said_to_be_public(release, tmp_path):
    write_files(tmp_path, BOUNDED)
    table = pd.read_csv(tmp_path / "visits.csv")
    table.assign(to=table["tract"][::-1].to_numpy()).to_csv(tmp_path / "visits.csv", index=False)
    code, out, err = release("2026-11", "visits.toml", "--json")
    assert code == 0, err
    assert "exact totals of months are public" in read_manifest(json.loads(out)["folder"])["privacy"]["unit_definition"]


# Configurations and code.


@pytest.mark.parametrize("tables", [VISITS, RECORDS, TOGETHER])
def test_a_configuration_of_a_series_reads_back_equal(tmp_path, tables):
    config = from_tables(tables)
    (tmp_path / "again.toml").write_text(to_toml(config), "utf-8")
    assert read_config(tmp_path / "again.toml") == config


def test_the_code_counts_the_same_month(tmp_path, monkeypatch):
    config = read_config(write_files(tmp_path, RECORDS)).in_period("2026-11")
    monkeypatch.chdir(tmp_path)
    made = made_by(f"import dpviz as dv\n{write_data(config)}")["areas"]
    assert made.during == dv.Period(name="2026-11", time="at", zone="Europe/Berlin")
    assert 0 < made.count.sum() < 60


def test_the_name_of_a_period_stands_in_the_paths(run, ledger, tmp_path):
    tables = changed(changed(TOGETHER, "data.points", "visits_{period}.csv"), "output.folder", "out {period}")
    config = write_files(tmp_path, tables)
    for month in ("2026-01", "2026-02"):
        (tmp_path / "visits.csv").rename(tmp_path / f"visits_{month}.csv")
        code, _, err = run("release", config, "--period", month)
        assert (code, (tmp_path / f"out {month}" / "manifest.json").is_file()) == (0, True), err
        write_files(tmp_path, tables, seed=7)
    assert run("release", config, "--period", "2026-03")[0] == 2
    assert ledger.account("visits").spent_by_period.keys() == {"2026-01", "2026-02"}


@pytest.mark.parametrize(("tables", "protects"), [(VISITS, "record"), (RECORDS, "person-period"), (BOUNDED, "person-period")])
def test_a_series_of_another_unit_is_refused_before_the_data_are_read(tables, protects):
    with pytest.raises(SettingError, match="The unit of these data is one"):
        from_tables(changed(tables, "dataset.series", SERIES | {"protects": protects}))


def test_a_series_with_a_time_needs_files():
    tables = VISITS | {"data": {"sample": "la_residents"}, "mechanism": {"key": "quadtree"}}
    del tables["regions"]
    with pytest.raises(SettingError, match="a sample has none"):
        from_tables(tables | {"dataset": {"name": "x", "cap_epsilon": 1, "series": {"time": "at"}}})


# Python.


def publish(tmp_path, ledger, data, period, **options):
    return dv.publish(
        data,
        dv.RegionTree(),
        PureBudget(1),
        **{"dataset": "visits", "publication": {"name": "Visits", "curator": "The town"}, "cap": PureBudget(1), "person": "who"} | options,
        folder=tmp_path / f"out {period} {len(list(tmp_path.iterdir()))}",
        ledger=ledger,
        period=period,
    )


def test_in_python_the_data_must_be_counted_in_the_period_that_pays(tmp_path, ledger):
    config, series = read_config(write_files(tmp_path)), Series(**SERIES)
    regions = dv.read_regions(tmp_path / "tracts.csv", levels=["county", "tract"])

    def count(**options):
        key = {"key": ledger.kept_key(), "person": "who", "contributions": 2, "count": "none"}
        return dv.read_areas(config.base / "visits.csv", regions=regions, region="tract", **key, **options)

    wrong = [None, dv.Period(name="2026-10", time="at", zone="Europe/Berlin"), dv.Period(name="2026-11", time="at", zone="UTC")]
    for during in wrong:
        with pytest.raises(SettingError, match="not counted as those of 2026-11"):
            publish(tmp_path, ledger, count(during=during), "2026-11", series=series)
    with pytest.raises(SettingError, match="not released in a series"):
        publish(tmp_path, ledger, count(), "2026-11")
    assert ledger.accounts() == []
    november = count(during=series.period_of("2026-11"))
    assert publish(tmp_path, ledger, november, "2026-11", series=series).account.spent["epsilon"] == 1
    with pytest.raises(RefusedError, match="2026-11 in 'visits' would be exceeded"):
        publish(tmp_path, ledger, november, "2026-11", series=series)
    with pytest.raises(RefusedError, match="paid from the command line"):
        publish(tmp_path, ledger, november, None)
    assert publish(tmp_path, ledger, count(during=series.period_of("2026-12")), "2026-12", series=series).period == "2026-12"


# After a crash.


def test_a_kept_release_is_published_as_that_of_its_period(run, release, ledger, tmp_path, monkeypatch):
    write_files(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(steps, "write_release", lambda *_, **__: 1 / 0)
        assert release("2026-11")[0] != 0
    assert ledger.account("visits").spent_by_period.keys() == {"2026-11"}
    assert "another --period" in release("2026-12", "visits.toml", "--paid", 1)[2]
    code, out, err = run("release", tmp_path / "visits.toml", "--paid", 1, "--json")
    assert code == 0, err
    assert read_manifest(json.loads(out)["folder"])["dataset"]["series"]["name"] == "2026-11"
    assert ledger.account("visits").draws == 1


# The script of the docs, and one long table.


def test_the_script_of_the_docs_makes_a_year(run, ledger, tmp_path, monkeypatch):
    """The shell expands it, with a `dpviz` that writes down how it is called; each call is then run."""
    page = (Path(dv.__file__).parent / "docs" / "ledger.md").read_text("utf-8").partition("## A series of releases\n")[2]
    part, script = re.search(r"```toml\n(.*?)```.*?```sh\n(.*?)```", page, re.DOTALL).groups()
    write_files(tmp_path, VISITS | tomllib.loads(part))
    monkeypatch.chdir(tmp_path)
    called = subprocess.run(["bash", "-ec", f"dpviz() {{ echo $@; }}\n{script}"], capture_output=True, text=True, check=True).stdout
    assert [run(*line.split())[0] for line in called.splitlines()] == [0] * 13
    assert ledger.account("visits").spent_by_period.keys() == set(MONTHS)
    assert [*dv.read_releases("year")["period"].unique()] == MONTHS


def test_a_folder_of_releases_is_one_long_table(run, ledger, tmp_path):
    config = write_files(tmp_path)
    (tmp_path / "year").mkdir()
    for month in ("2026-11", "2026-02"):
        assert run("release", config, "--period", month, "--output", tmp_path / "year" / f"v{month}")[0] == 0
    (tmp_path / "year" / "notes.txt").write_text("no release")
    table = dv.read_releases(tmp_path / "year")
    assert [*table.columns] == ["period", "folder", "level", "id", "count", "ci_low", "ci_high"]
    assert [*table["period"].unique()] == ["2026-02", "2026-11"]
    assert [*table.groupby("level").size()] == [2, 4, 6]
    november = dv.read_release(tmp_path / "year" / "v2026-11").to_frame("tract")
    rows = table[(table["period"] == "2026-11") & (table["level"] == 2)]
    for name, column in (("id", "region"), ("count", "count"), ("ci_low", "ci_low"), ("ci_high", "ci_high")):
        assert rows[name].tolist() == november[column].tolist()
    with pytest.raises(InputError, match="no folder with releases"):
        dv.read_releases(tmp_path / "out")
