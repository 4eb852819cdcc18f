"""Publishing from Python: all or nothing, at the price that the ledger notes."""

import pytest

import dpviz as dv

WORDS = {"name": "Homes", "curator": "A town"}
POINTS = dv.PointCounts.from_matrix([[9, 0], [0, 4]])


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
