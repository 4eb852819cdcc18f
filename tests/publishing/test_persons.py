"""The definition of a person, from the configuration to ledger, manifest and report; an account has one definition."""

import json

import pandas as pd
import pytest

from dpviz.data.flows import Flows
from dpviz.errors import RefusedError
from dpviz.mechanisms import TopDown
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.order import unit_definition
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import draw
from dpviz.release.files import read_manifest, read_release
from tests.publishing.configs import FLOWS, POINTS, changed, written
from tests.publishing.test_publish import order
from tests.release_cases import flows_on, regions_with_shapes

MARKUP = "<b>user</b>"
EITHER = TopDown(neighbours="add_remove")
TRIPS = changed(FLOWS, "mechanism.settings", {"neighbours": "add_remove"})


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger.sqlite"))
    return Ledger()


def visits(folder, tables):
    """A configuration in a folder with visits, and trips, of users who have several."""
    path = written(folder, tables)
    for name in ("crowd", "trips"):
        table = pd.read_csv(folder / f"{name}.csv")
        table.assign(**{MARKUP: [1, 1, 2, 3, 3][: len(table)], "visit": range(len(table))}).to_csv(folder / f"{name}.csv", index=False)
    return path


def of_persons(tables, column, most=3):
    tables = changed(tables, "data.person", column)
    tables["dataset"].pop("unit", None)
    return changed(tables, "data.contributions", most)


@pytest.mark.parametrize(("tables", "each"), [(POINTS, "records"), (TRIPS, "trips")])
def test_the_same_file_is_not_added_up_under_another_column_of_persons(run, ledger, tmp_path, tables, each):
    assert run("release", visits(tmp_path, of_persons(tables, MARKUP)))[0] == 0
    name = tables["dataset"]["name"]
    assert ledger.account(name).terms.person == MARKUP
    said = f"a person is one value of the column '{MARKUP}', of whom at most 3 {each} were counted"
    assert read_manifest(tmp_path / "out")["privacy"]["unit_definition"] == said
    assert read_release(tmp_path / "out").receipt.unit_definition == said
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "one value of the column &#39;&lt;b&gt;user&lt;/b&gt;&#39;" in page
    assert MARKUP not in page
    assert f"one person (one value of the column '{MARKUP}')" in run("ledger", "show")[1]
    assert json.loads(run("ledger", "show", name, "--json")[1])["person"] == MARKUP
    again = changed(changed(of_persons(tables, "visit"), "output.folder", "again"), "dataset.name", "renamed")
    code, _, err = run("release", visits(tmp_path, again))
    assert code == 1
    assert f"its definition of a person is one value of the column '{MARKUP}', not one value of the column 'visit'" in err
    assert ledger.account(name).draws == 1
    wider = changed(of_persons(tables, MARKUP, 5), "output.folder", "wider")
    assert run("release", visits(tmp_path, wider))[0] == 0, "another bound is the same person"


def test_persons_without_a_column_are_described_as_vouched_for(ledger):
    plain = flows_on(regions_with_shapes())
    flows = Flows(plain.regions, plain.origin, plain.destination, plain.count, contributions=4, unit="person")
    asked = order(EITHER, data=flows, fingerprints=fingerprints_of(flows), budget=ApproxBudget(1, "1e-6"), cap=ApproxBudget(5, "1e-5"))
    assert unit_definition(asked) == "no column says who a person is; the curator vouches that nobody has more than 4 trips"
    paid = draw(asked, ledger)
    assert (paid.account.terms.person, paid.release.receipt.unit_definition) == ("", unit_definition(asked))


def test_an_old_account_says_when_it_takes_a_definition(ledger, monkeypatch):
    plain = flows_on(regions_with_shapes())
    flows = Flows(plain.regions, plain.origin, plain.destination, plain.count, contributions=4, unit="person", enforced=True)
    asked = {
        "data": flows,
        "fingerprints": ("ab" * 32,),
        "budget": ApproxBudget(1, "1e-6"),
        "cap": ApproxBudget(5, "1e-5"),
        "dataset": "trips",
    }
    draw(order(EITHER, **asked), ledger)
    with ledger._file.writing() as db:
        db.execute("UPDATE dataset SET person = NULL")
    lines = []
    draw(order(EITHER, **asked, person="user"), ledger, say=lines.append)
    assert lines[0].startswith("The ledger had not noted what a person of 'trips' is: from now on one value of the column 'user'.")
    assert ledger.account("trips").spent["epsilon"] == 2
    with pytest.raises(RefusedError, match="not one value of the column 'visit'"):
        draw(order(EITHER, **asked, person="visit"), ledger)


def test_records_have_no_unit_definition(run, ledger, tmp_path):
    assert run("release", written(tmp_path, POINTS))[0] == 0
    assert read_manifest(tmp_path / "out")["privacy"]["unit_definition"] is None
    assert "Whom it protects" not in (tmp_path / "out" / "report.html").read_text("utf-8")
