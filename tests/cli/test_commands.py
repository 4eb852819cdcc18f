"""The command line: results on stdout, messages on stderr, one line per error, and exit codes."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from dpviz.__main__ import main
from dpviz.cli import audit, check, commands
from dpviz.errors import DpvizError, RefusedError
from dpviz.mechanisms import UniformGrid
from dpviz.mechanisms.audit import Added
from dpviz.privacy import ledger as ledger_module
from dpviz.release.files import read_manifest
from tests.ledgers import is_empty
from tests.often import often
from tests.publishing.configs import FLOWS, POINTS, changed, written

SAMPLES = Path(__file__).parents[2] / "sample_data"


def test_release_publishes_and_tells_the_curator_alone_what_was_left_out(run, tmp_path, ledger):
    code, out, err = run("release", written(tmp_path, POINTS), "--left-out")
    assert code == 0
    assert str(tmp_path / "out") in out
    assert "left: epsilon 0.5" in err
    assert "Curator only: left out 1: 1 outside the domain." in err
    assert "left out" not in (tmp_path / "out" / "manifest.json").read_text("utf-8")
    assert ledger.account("crowd").draws == 1


@pytest.mark.parametrize("command", often(["check", "release"], 1))
def test_how_many_records_are_left_out_is_a_look_at_the_truth_that_the_ledger_notes(command, run, tmp_path, ledger):
    """By these numbers the bounds of a domain could be chosen, and the manifest would say that nobody looked at the truth."""
    config, options = written(tmp_path, POINTS), ["--dry-run"] * (command == "release")
    _, out, err = run(command, config, *options)
    assert "1 outside" not in out + err
    assert is_empty(ledger)
    assert "Curator only: left out 1: 1 outside the domain." in run(command, config, *options, "--left-out")[2]
    run("release", config)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert ledger.account("crowd").truth_seen
    assert manifest["implementation"]["tuning"]["truth_seen"] is True


def test_what_is_left_out_is_not_shown_where_the_look_cannot_be_noted(run, tmp_path, ledger):
    ledger.path.write_bytes(b"no ledger")
    err = run("check", written(tmp_path, POINTS), "--left-out")[2]
    assert "is not shown, since the ledger cannot record the look" in err
    assert "1 outside" not in err


def test_release_of_trips_as_json_into_a_folder_from_here(run, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, out, _ = run("release", written(tmp_path, FLOWS), "--json", "--output", "trips")
    found = json.loads(out)
    assert code == 0
    assert found["dataset"]["left"] == {"epsilon": "1", "delta": "9/1000000"}
    assert {"manifest.json", "report.html", "flows.parquet"} <= set(found["files"])
    assert found["release_id"] in (tmp_path / "here" / "trips" / "manifest.json").read_text("utf-8")


def test_a_dry_run_spends_nothing_and_prints_expected_errors(run, tmp_path, ledger):
    code, out, _ = run("release", written(tmp_path, POINTS), "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert [level["numbers"] for level in found["levels"]] == [1, 4, 16, 64]
    assert all(level["stddev"] > 0 for level in found["levels"])
    assert "Nothing was spent" in run("release", written(tmp_path, POINTS), "--dry-run")[1]
    assert is_empty(ledger), "no account, and no look at the truth"


def test_a_dry_run_with_a_public_guess_says_how_many_counts_are_useful(run, tmp_path, ledger):
    config = written(tmp_path, changed(POINTS, "mechanism", {"key": "path_tree"}))
    assert "Give --records N" in run("release", config, "--dry-run")[1]
    code, out, _ = run("release", config, "--dry-run", "--records", 5_000, "--json")
    found = json.loads(out)
    assert code == 0
    assert "5,000 made-up records, which lie evenly" in found["note"]
    assert found["levels"][0]["useful"] == 1
    assert all(level["useful"] <= level["numbers"] for level in found["levels"])
    text = run("release", config, "--dry-run", "--records", 5_000, "--spread", "towns")[1]
    assert "as towns are" in text
    assert "useful" in text
    assert "Give --records" not in text
    for options in (["--records", 5], ["--dry-run", "--spread", "towns"]):
        code, _, err = run("release", config, *options)
        assert (code, "are a guess for --dry-run" in err) == (2, True)
    (tmp_path / "crowd.csv").unlink()
    for options, text in ((["--records", 0], "records must be"), (["--records", 5, "--spread", "denominator"], "has no denominator")):
        code, _, err = run("release", config, "--dry-run", *options)
        assert (code, text in err) == (2, True), "refused before a private file is opened"
    assert is_empty(ledger)


@pytest.mark.parametrize("path", ["first", "second"])
def test_a_dry_run_says_what_the_ledger_would_count_or_refuse(run, tmp_path, ledger, path):
    """With an account in rho: a pure epsilon has a price in rho, (epsilon, delta) has none."""
    in_rho = {"name": "trips", "unit": "trip", "cap_rho": "1/10"}
    trips = changed(FLOWS, "dataset", in_rho)
    if path == "second":
        assert run("release", written(tmp_path, changed(trips, "budget", {"rho": "1/20"})), "--output", tmp_path / "a")[0] == 0
        trips = changed(trips, "dataset", {"name": "trips", "unit": "trip"})
    draws = [account.draws for account in ledger.accounts()]
    code, out, _ = run("release", written(tmp_path, trips), "--dry-run")
    assert code == run("release", written(tmp_path, trips))[0] == 1
    assert out.startswith("This release would be refused: This dataset's ledger counts rho")
    assert "here rho 0.0" in out
    assert "Would spend" not in out
    assert "town to town" in out, "the errors are there all the same"
    code, out, _ = run("release", written(tmp_path, changed(trips, "budget", {"rho": "1/20"})), "--dry-run", "--json")
    left = "1/20" if path == "first" else "0"
    assert (code, json.loads(out)["cost"], json.loads(out)["left"]) == (0, {"rho": "1/20"}, {"rho": left})
    over = run("release", written(tmp_path, changed(trips, "budget", {"rho": 1})), "--dry-run", "--json")
    assert (over[0], "cap of 'trips' would be exceeded" in json.loads(over[1])["refused"]) == (1, True)
    assert [account.draws for account in ledger.accounts()] == draws


def test_a_dry_run_of_a_configuration_without_texts_shows_its_cost_and_names_what_is_missing(run, tmp_path, ledger):
    early = written(tmp_path, changed(POINTS, "publication.curator", ""))
    code, out, _ = run("release", early, "--dry-run")
    assert (code, "This release would be refused: The publication's curator must not be blank" in out) == (1, True)
    assert "Would spend" in out
    assert run("release", early)[0] != 0
    assert is_empty(ledger)


def test_a_dry_run_states_the_price_of_a_pure_epsilon_in_rho(run, tmp_path):
    points = changed(POINTS, "dataset", {"name": "crowd", "unit": "record", "cap_rho": 1})
    code, out, _ = run("release", written(tmp_path, points), "--dry-run")
    assert code == 0
    assert "Would spend epsilon 0.5 (in the ledger rho 0.125)" in out
    assert "left after it: rho 0.875. Nothing was spent." in out
    code, out, _ = run("release", written(tmp_path, changed(POINTS, "dataset.cap_epsilon", None)), "--dry-run")
    assert code == 1
    assert "give a cap" in out


def test_the_command_line_refuses_a_seed_and_says_why(run, tmp_path):
    code, out, err = run("release", written(tmp_path, POINTS), "--seed", "7")
    assert (code, out) == (1, "")
    assert "anyone who knows the seed can subtract the noise" in err


@pytest.mark.parametrize(
    ("path", "value", "code", "message"),
    [
        ("data.points", "missing.csv", 2, "does it exist"),
        ("output.folder", ".", 2, "exists already"),
        ("budget.epsilon", 5, 1, "left"),
        ("mechanism.key", "exact_kdtree", 1, "NOT PRIVATE"),
        ("lat", 3, 2, "has no key 'lat'"),
    ],
)
def test_exit_codes_tell_refusals_from_mistakes(run, tmp_path, ledger, path, value, code, message):
    *result, err = run("release", written(tmp_path, changed(POINTS, path, value)))
    assert result == [code, ""]
    assert message in err.splitlines()[-1]
    assert "Rosa" not in err
    assert sum(account.draws for account in ledger.accounts()) == 0


def test_an_error_is_one_line_or_one_json_object(run, tmp_path):
    code, out, err = run("release", tmp_path / "missing.toml")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    code, out, err = run("release", tmp_path / "missing.toml", "--json")
    assert (code, out) == (2, "")
    assert json.loads(err) == {"error": json.loads(err)["error"], "kind": "InputError", "exit": 2}
    assert json.loads(run("check", "--json")[2])["exit"] == 2, "wrong usage"


@pytest.mark.parametrize("words", ["", "nonsense", "release", "release a --dry", "audit quadtree --runs many", "ledger erase", "app b"])
def test_wrong_usage_is_one_line_that_points_to_help(run, words):
    code, out, err = run(*words.split())
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "--help" in err


def test_help_and_version_name_every_command(capsys):
    for words in (["--help"], ["--version"]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"\n    {name}\s", out) for name in commands.COMMANDS)
    assert "dpviz " in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (RuntimeError("Rosa"), 2, "RuntimeError"),
        (MemoryError(), 2, "memory"),
        (KeyboardInterrupt(), 130, "Interrupted: nothing was written."),
        (KeyboardInterrupt("It is spent."), 130, "It is spent."),
        (RefusedError("No."), 1, "No."),
        (DpvizError("two\nlines \x1b[31m"), 2, "two lines"),
    ],
)
def test_every_failure_is_one_line_without_a_traceback(run, monkeypatch, raised, code, message):
    def failing(_):
        raise raised

    monkeypatch.setitem(commands.COMMANDS, "check", failing)
    found, _, err = run("check", "a.csv")
    assert (found, len(err.splitlines())) == (code, 1)
    assert message in err
    assert not re.search("Rosa|\x1b", err)


def test_check_looks_at_no_value_of_a_column_unless_persons_are_to_be_searched(run, tmp_path, ledger, monkeypatch):
    path = written(tmp_path, POINTS)
    with monkeypatch.context() as patch:
        patch.setattr(check, "find_repeated_columns", lambda *_, **__: pytest.fail("values were counted"))
        assert run("check", tmp_path / "crowd.csv")[0] == 0
    assert is_empty(ledger)
    code, out, err = run("check", tmp_path / "crowd.csv", "--people")
    assert "Is one of these columns a person, a household or a vehicle? Then name it under [data] person:" in out
    assert "  secret: 1 value, 5 rows: publishing by record would not hide it" in out
    assert (code, f"Distinct values of columns are counted, to find persons: the ledger {ledger.path} records that" in err) == (0, True)
    found = json.loads(run("check", tmp_path / "crowd.csv", "--people", "--json")[1])
    assert found["may_be_persons"] == [{"column": "secret", "values": 1, "rows": 5, "once": 0}]
    assert found["ledger"] == str(ledger.path)
    assert run("release", path)[0] == 0
    assert read_manifest(tmp_path / "out")["implementation"]["tuning"] == {"truth_seen": False, "persons_searched": True}
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "the true numbers were not looked at while settings were chosen. Distinct values of its columns were counted" in report
    assert "distinct values of columns were counted, to find persons" in run("ledger", "show")[1]


def test_columns_are_not_searched_if_the_ledger_cannot_record_it(run, tmp_path, ledger, monkeypatch):
    path = written(tmp_path, POINTS)
    monkeypatch.setattr(check, "find_repeated_columns", lambda *_, **__: pytest.fail("values were counted"))
    ledger.path.write_bytes(b"not a ledger")
    assert run("check", tmp_path / "crowd.csv", "--people")[:2] == (1, "")
    assert "give the data in place of a configuration" in run("check", path, "--people")[2]


@pytest.mark.parametrize(
    "words", ["release {}", "release {} --dry-run", "release {} --paid 1", "check {0}/../crowd.csv --people", "ledger show"]
)
def test_a_mistyped_ledger_is_refused_by_its_name_and_nothing_is_made(run, tmp_path, monkeypatch, words):
    config, there = written(tmp_path, POINTS), {path.name for path in tmp_path.iterdir()}
    mistyped = tmp_path / "lefgers" / "ledger.sqlite"
    monkeypatch.setenv("DPVIZ_LEDGER", str(mistyped))
    code, out, err = run(*words.format(config).replace(f"{config}/..", str(tmp_path)).split())
    assert (code, f"begin a new ledger there with: dpviz ledger new {mistyped}" in out + err) == (1, True)
    assert {path.name for path in tmp_path.iterdir()} == there


def test_a_new_ledger_is_used_once_it_is_made(run, tmp_path, monkeypatch):
    path = tmp_path / "own.sqlite"
    code, out, _ = run("ledger", "new", path)
    assert (code, out) == (0, f"Made the ledger {path}, which only you can read.\nTo use it: export DPVIZ_LEDGER={path}\n")
    assert run("ledger", "new", path)[0] == run("ledger", "new")[0] == 2
    monkeypatch.setenv("DPVIZ_LEDGER", str(path))
    published = json.loads(run("release", written(tmp_path, POINTS), "--json")[1])
    assert (published["ledger"], published["ledger_made"]) == (str(path), False)


@pytest.mark.parametrize("refused_first", [False, True])
def test_the_usual_ledger_says_where_it_is_made(run, tmp_path, monkeypatch, refused_first):
    monkeypatch.delenv("DPVIZ_LEDGER")
    monkeypatch.setattr(ledger_module, "user_data_path", lambda *_, **__: tmp_path / "data")
    path = tmp_path / "data" / "ledger.sqlite"
    code, _, err = run("ledger", "show")
    assert (code, f"There is no ledger {path} yet" in err) == (1, True)
    if refused_first:
        code, _, err = run("release", written(tmp_path, changed(POINTS, "dataset.cap_epsilon", 0.25)))
        assert (code, f"Made a new ledger, {path}: there was none yet" in err) == (1, True)
    code, out, err = run("release", written(tmp_path, POINTS), "--json")
    assert (code, f"Made a new ledger, {path}: there was none yet" in err) == (0, not refused_first)
    assert (json.loads(out)["ledger"], json.loads(out)["ledger_made"]) == (str(path), not refused_first)
    assert run("ledger", "show")[1].splitlines()[0] == f"Ledger: {path}"


def test_check_and_ledger_show_give_text_and_json(run, tmp_path, ledger):
    path = written(tmp_path, POINTS)
    lines = run("check", tmp_path / "crowd.csv")[1].splitlines()
    assert lines[:2] == ["CSV; columns: lon, lat, secret.", "As points: x = lon, y = lat."]
    assert [line.split(":")[1] for line in lines[2:4]] == [" [data] crs", " [domain] bounds and crs"]
    assert run("ledger", "show")[:2] == (0, f"Ledger: {ledger.path}\nThe ledger is empty.\n")
    assert run("ledger", "show", "crowd")[0] == 2
    run("release", path)
    line = "crowd: 1 draw, spent epsilon 0.5, left epsilon 0.5; one record, add or remove one\n"
    assert run("ledger", "show")[:2] == (0, f"Ledger: {ledger.path}\n{line}")
    assert "quadtree  epsilon 0.5  release, published as" in run("ledger", "show", "crowd")[1]
    found = json.loads(run("ledger", "show", "crowd", "--json")[1])
    assert (found["spent"]["epsilon"], len(found["entries"])) == ("1/2", 1)


def test_audit_gives_a_lower_bound_and_fails_on_a_fault(run, monkeypatch):
    monkeypatch.setattr(UniformGrid, "audit_inputs", (Added.to_cells(order=1),))
    code, out, _ = run("audit", "uniform_grid", "--runs", "100", "--json")
    row = json.loads(out)[0]
    assert (code, row["passed"], row["lower_bound"] <= row["epsilon"]) == (0, True, True)
    code, _, err = run("audit", "no such")
    assert (code, "; " in err) == (2, True), "names with commas stay distinct"
    table = pd.DataFrame([{**row, "passed": False}])
    monkeypatch.setattr(audit, "audit_all", lambda *_, **__: table)
    assert run("audit", "uniform_grid", "--runs", "100")[0] == 1


def test_the_bundled_configuration_of_a_release_is_good(run, tmp_path):
    code, out, _ = run("release", SAMPLES / "release.toml", "--dry-run", "--json", "--output", tmp_path / "out")
    assert code == 0
    assert json.loads(out)["levels"][-1]["numbers"] == 4**8
