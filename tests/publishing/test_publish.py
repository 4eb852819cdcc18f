"""Publication: public checks first, then payment, then the release; every later failure says that the budget is spent."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DpvizError, RefusedError, SettingError
from dpviz.mechanisms import ExactKdtree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.ledger import Ledger
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import Order, PublicationTexts, draw, publish, write
from dpviz.release.files import read_release
from dpviz.release.manifest import Publication, describe
from dpviz.samples.flows import load_flow_sample
from dpviz.space.domain import Domain

PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
POSITIONS = np.random.default_rng(1).uniform(0, 16, (2, 500))
CROWD = PointCounts.from_xy(*POSITIONS, domain=PLANE)
HALF = PureBudget("1/2")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def words(tmp_path):
    return PublicationTexts(name="A crowd", curator="The town", folder=tmp_path / "out", formats=("geoparquet", "csv"))


def order(mechanism=None, **options):
    plain = {"budget": HALF, "dataset": "crowd", "fingerprints": fingerprints_of(CROWD), "cap": PureBudget(1), "data": CROWD}
    return Order(mechanism=mechanism or Quadtree(height=2), **{**plain, **options})


class Watched(Quadtree):
    """A quadtree that acts only on the real records, not in a rehearsal, whose records are made up."""

    def release(self, points, budget, entropy):
        if points.count.sum() == len(POSITIONS[0]):
            self.met(points, entropy)
        return super().release(points, budget, entropy)


def watched(met):
    return type("Met", (Watched,), {"met": lambda self, points, entropy: met(entropy)})(height=2)


def test_a_release_is_drawn_described_reported_and_written(ledger, words):
    told = []
    done = publish(order(), words, ledger, say=told.append)
    again = read_release(done.folder)
    assert not again.simulation
    assert again.receipt.spent == HALF
    assert {"manifest.json", "report.html"} <= {path.name for path in done.folder.iterdir()}
    assert done.account.spent["epsilon"] == HALF.epsilon
    assert [(entry.purpose, entry.published) for entry in ledger.entries("crowd")] == [("release", done.manifest["identity"]["release_id"])]
    assert len(told) >= 2


def test_the_ledger_counts_the_release_before_records_are_used(ledger, words):
    seen = []
    mechanism = watched(lambda entropy: seen.append((ledger.account("crowd").draws, entropy.simulation)))
    publish(order(mechanism), words, ledger)
    assert seen == [(1, False)]


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"budget": PureBudget(2)}, RefusedError, "left"),
        ({"budget": ApproxBudget(1, "1e-6")}, BudgetError, "PureBudget"),
        ({"cap": None}, BudgetError, "cap"),
        ({"cap": ZcdpBudget(1), "budget": ZcdpBudget("1/2")}, BudgetError, "PureBudget"),
        ({"mechanism": ExactKdtree()}, RefusedError, "NOT PRIVATE"),
        ({"mechanism": Quadtree(split="custom", weights=(1.0, 2.0))}, DpvizError, "weights"),
    ],
)
def test_invalid_public_inputs_spend_nothing(ledger, words, change, error, told):
    with pytest.raises(error, match=told) as refused:
        publish(replace(order(), **change), words, ledger)
    assert ledger.accounts() == []
    assert ledger.find_by_fingerprints(order().fingerprints) is None
    assert "budget is spent" not in str(refused.value)
    assert not words.folder.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"curator": " "}, "curator"),
        ({"formats": ("csv",)}, "geoparquet among them"),
        ({"formats": ("geoparquet", "pickle")}, "formats"),
        ({"name": "bell \a"}, "control character"),
    ],
)
def test_texts_that_cannot_be_published_spend_nothing(ledger, words, change, told):
    with pytest.raises(SettingError, match=told):
        publish(order(), replace(words, **change), ledger)
    assert ledger.accounts() == []


def test_a_folder_that_cannot_be_made_spends_nothing(ledger, words, tmp_path):
    words.folder.mkdir()
    for folder, told in ((words.folder, "exists already"), (tmp_path / "no" / "out", "does not exist")):
        with pytest.raises(SettingError, match=told):
            publish(order(), replace(words, folder=folder), ledger)
    assert ledger.accounts() == []


class LibraryError(Exception):
    """What a library might raise, quoting a cell."""


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (LibraryError("Rosa lives here"), DpvizError, "The draw failed (LibraryError). The budget is spent: draw 1 of 'crowd'"),
        (MemoryError(), DpvizError, "There is not enough memory. The budget is spent"),
        (SettingError("Too large."), SettingError, "Too large. The budget is spent"),
        (KeyboardInterrupt(), KeyboardInterrupt, "Interrupted: nothing was published. The budget is spent"),
    ],
)
def test_a_failure_after_payment_says_that_the_budget_is_spent(ledger, words, raised, kind, told):
    def met(_):
        raise raised

    with pytest.raises(kind) as failed:
        publish(order(watched(met)), words, ledger)
    assert str(failed.value).startswith(told)
    assert str(failed.value).count("The budget is spent") == 1
    assert "Rosa" not in str(failed.value)
    assert failed.value.__context__ is None
    assert ledger.account("crowd").draws == 1
    assert not words.folder.exists()


def test_a_failure_to_write_says_that_the_budget_is_spent(ledger, words, monkeypatch):
    def refused(*_, **__):
        raise DpvizError("The release could not be written (No space left on device).")

    monkeypatch.setattr("dpviz.publishing.publish.write_release", refused)
    with pytest.raises(DpvizError, match=r"No space left on device\)\. The budget is spent"):
        publish(order(), words, ledger)
    assert [entry.published for entry in ledger.entries("crowd")] == [None]


def test_a_draw_of_curate_can_be_published_later_and_the_manifest_counts_all(ledger, words):
    quarter = order(budget=PureBudget("1/4"))
    draw(quarter, ledger)
    kept = draw(quarter, ledger)
    ledger.note_account_truth_seen("crowd")
    done = write(kept, words, ledger)
    again = read_release(done.folder)
    np.testing.assert_array_equal(again.count, kept.release.count)
    told = describe(kept.release, Publication(name="a", curator="b", description="", region="", intended_use="", draws=2, truth_seen=True))
    assert done.manifest["implementation"] == told["implementation"]
    assert '"draws": 2' in (done.folder / "manifest.json").read_text("utf-8")
    assert [(entry.purpose, entry.published is None) for entry in ledger.entries("crowd")] == [("draw", True), ("draw", False)]
    assert ledger.account("crowd").draws == 2


def test_known_data_need_no_cap_and_keep_their_account_under_another_name(ledger):
    draw(order(), ledger)
    told = []
    paid = draw(order(dataset="renamed", cap=None), ledger, say=told.append)
    assert paid.account.name == "crowd"
    assert "crowd" in told[0]
    with pytest.raises(RefusedError, match="left"):
        draw(order(dataset="renamed again", cap=None), ledger)
    assert ledger.account("crowd").draws == 2


def test_data_that_join_an_account_by_its_name_alone_are_named_as_new(ledger):
    told = []
    draw(order(), ledger, say=told.append)
    draw(order(fingerprints=("ab" * 32,)), ledger, say=told.append)
    assert ["These data are new to the account" in line for line in told] == [False, True, False]


def test_a_dataset_has_one_unit_and_one_neighbour_relation(ledger):
    flows = load_flow_sample("northeast_commuters")
    cap = ApproxBudget(4, "1e-6")
    plain = order(TopDown(), data=flows, fingerprints=fingerprints_of(flows), budget=ApproxBudget(1, "1e-8"), cap=cap, dataset="trips")
    draw(plain, ledger)
    assert ledger.account("trips").terms.neighbours == "replace one"
    with pytest.raises(RefusedError):
        draw(replace(plain, mechanism=TopDown(neighbours="add_remove")), ledger)
    assert ledger.account("trips").draws == 1


def test_a_mechanism_whose_receipt_changes_is_not_published(ledger, words):
    class Turncoat(Quadtree):
        def release(self, points, budget, entropy):
            made = super().release(points, budget, entropy)
            return made if not len(points.count) else replace(made, receipt=replace(made.receipt, neighbours="replace one"))

    with pytest.raises(RefusedError, match=r"something else than that of its dry run; nothing is published\. The budget is spent"):
        publish(order(Turncoat(height=2)), words, ledger)


def test_an_order_shows_no_count_and_no_mark():
    assert "500" not in repr(order())
    assert fingerprints_of(CROWD)[0] not in repr(order())
