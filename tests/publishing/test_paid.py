"""The published release is the paid one; failures happen before payment where possible; errors say what was published."""

from dataclasses import replace

import numpy as np
import pytest

from dpviz.amounts import format_budget
from dpviz.errors import DpvizError, RefusedError, SettingError
from dpviz.mechanisms import Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.ledger import Ledger
from dpviz.privacy.ledger_file import LedgerFile
from dpviz.publishing import publish as module
from dpviz.publishing.private_data import fingerprints_of
from dpviz.publishing.publish import Order, PublicationTexts, draw, publish
from dpviz.release.files import read_manifest, read_release, write_release
from tests.publishing.test_publish import HALF, order
from tests.release_cases import flows_on, regions_with_shapes


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def words(tmp_path):
    return PublicationTexts(name="A crowd", curator="The town", folder=tmp_path / "out", formats=("geoparquet", "csv"))


def of_another_budget(budget, *, always):
    """A quadtree that spends another budget than it is given, always or only if there are records."""

    class Greedy(Quadtree):
        def release(self, points, handed, entropy):
            return super().release(points, budget if always or len(points.count) else handed, entropy)

    return Greedy(height=2)


def test_a_mechanism_that_spends_more_than_its_budget_is_refused_before_payment(ledger, words):
    with pytest.raises(RefusedError, match="another budget") as refused:
        publish(order(of_another_budget(PureBudget(50), always=True)), words, ledger)
    assert "is spent" not in str(refused.value)
    assert ledger.accounts() == []


def test_a_mechanism_that_spends_more_on_records_is_not_published(ledger, words):
    with pytest.raises(RefusedError, match=r"another budget; nothing is published\. The budget is spent"):
        publish(order(of_another_budget(PureBudget(50), always=False)), words, ledger)
    assert not words.folder.exists()


def test_a_mechanism_that_states_another_bound_is_refused(ledger, words):
    class Bounded(Quadtree):
        def release(self, points, budget, entropy):
            made = super().release(points, budget, entropy)
            return replace(made, receipt=replace(made.receipt, contributions=2))

    with pytest.raises(RefusedError, match="records per unit"):
        publish(order(Bounded(height=2)), words, ledger)
    assert ledger.accounts() == []


@pytest.mark.parametrize("name", ["n" * 250, "half \ud800", "nul \0"])
def test_a_folder_that_cannot_be_made_on_the_disk_spends_nothing(ledger, words, tmp_path, name):
    with pytest.raises(SettingError, match="cannot be made"):
        publish(order(), replace(words, folder=tmp_path / name), ledger)
    assert ledger.accounts() == []
    assert list(tmp_path.iterdir()) == []


def test_a_lone_surrogate_in_a_region_spends_nothing(ledger):
    regions = regions_with_shapes()
    flows = flows_on(replace(regions, names=(regions.names[0], np.array(["A", "B", "C", "half \ud800"], object))))
    asked = Order(
        data=flows,
        mechanism=TopDown(),
        budget=ApproxBudget(1, "1e-6"),
        dataset="trips",
        marks=fingerprints_of(flows),
        cap=ApproxBudget(2, "1e-5"),
    )
    with pytest.raises(SettingError, match="half a character"):
        draw(asked, ledger)
    assert ledger.accounts() == []


def test_the_ledger_is_not_used_between_payment_and_release(ledger, monkeypatch):
    real = Ledger.pay

    def paid_for(*given, **options):
        found = real(*given, **options)
        monkeypatch.setattr(LedgerFile, "_open_checked", lambda *_: pytest.fail("asked"))
        return found

    monkeypatch.setattr(Ledger, "pay", paid_for)
    told = []
    paid = draw(order(), ledger, say=told.append)
    assert (paid.entry, paid.account.draws, paid.account.spent["epsilon"]) == (1, 1, HALF.epsilon)
    assert told == ["Spent epsilon 0.5; left: epsilon 0.5. Drawing."]


def test_a_paid_release_is_written_elsewhere_if_its_folder_fails(ledger, words, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def full(release, folder, *rest, **options):
        if folder == words.folder:
            raise DpvizError("No room.")
        return write_release(release, folder, *rest, **options)

    monkeypatch.setattr(module, "write_release", full)
    told = []
    done = publish(order(), words, ledger, say=told.append)
    assert done.folder.parent.parent == tmp_path / "temporary"
    assert told[-1].startswith(f"No room. It is in {done.folder} instead")
    assert read_release(done.folder).receipt.total == HALF
    assert ledger.entries("crowd")[0].published is not None


def test_if_no_folder_can_be_written_nothing_is_left_behind(ledger, words, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def full(*_, **__):
        raise DpvizError("No room.")

    monkeypatch.setattr(module, "write_release", full)
    with pytest.raises(DpvizError, match=r"^No room\. The budget is spent"):
        publish(order(), words, ledger)
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, "Interrupted. Published in {}; the ledger could not note it."),
        (RefusedError("The ledger is full."), RefusedError, "Published in {}; the ledger could not note it. The ledger is full."),
        (OSError("secret"), RefusedError, "Published in {}; the ledger could not note it."),
    ],
)
def test_failures_after_the_files_are_written_say_so(ledger, words, monkeypatch, raised, kind, told):
    def failing(*_):
        raise raised

    monkeypatch.setattr(Ledger, "published", failing)
    with pytest.raises(kind) as failed:
        publish(order(), words, ledger)
    assert str(failed.value).startswith(told.format(words.folder))
    assert "nothing was published" not in str(failed.value)
    assert "secret" not in str(failed.value)
    assert read_release(words.folder).receipt.total == HALF


def test_the_remaining_budget_is_rounded_down_and_the_manifest_is_exact(ledger, words):
    done = publish(order(cap=PureBudget("7/6")), words, ledger)
    left = format_budget(done.account.left)
    assert left == "epsilon 0.666666666"
    draw(order(budget=PureBudget(left.split()[1]), cap=PureBudget("7/6")), ledger)
    dataset = read_manifest(words.folder)["dataset"]
    assert dataset["cap"]["epsilon"] == {"exact": "7/6", "decimal": 7 / 6}
    assert (dataset["spent"]["epsilon"]["exact"], dataset["spent"]["rho"]) == ("1/2", None)


def test_data_with_two_accounts_are_refused_with_a_remedy(ledger):
    draw(order(budget=PureBudget("1/4")), ledger)
    draw(order(budget=PureBudget("1/4"), dataset="others", marks=("ab" * 32,)), ledger)
    with pytest.raises(RefusedError, match=r"'crowd' and 'others'.*give the name that these data had before"):
        draw(order(dataset="others"), ledger)
