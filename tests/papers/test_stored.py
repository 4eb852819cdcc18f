"""Runs that come with the package: what made them is known, and a change of it marks them."""

import shutil
from dataclasses import replace

import pytest

from dpviz.amounts import format_decimal
from dpviz.mechanisms import Quadtree
from dpviz.papers import stored
from dpviz.papers.catalogue import PAPERS, find_figure
from dpviz.papers.figures import PAPER, Size, run_figure
from dpviz.papers.make_stored import confirm_run, digest_data, store_run
from dpviz.papers.stored import PACKAGE, load_stored, without_comments
from dpviz.privacy.entropy import Entropy

QUADTREE = "mechanisms/points/quadtree.py"
SETTINGS = {"size": 2000, "height": 3, "epsilons": (1.0,), "queries": 5}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A small figure whose run is stored, with a copy of the package's sources to change."""
    monkeypatch.setattr(stored, "FOLDER", tmp_path / "stored")
    paper, figure = find_figure("psd", "3")
    figure = replace(figure, sizes={PAPER: Size(about="Few crossings.", settings=SETTINGS, seeds=2, seconds=1)})
    store_run(paper, figure)
    shutil.copytree(PACKAGE, tmp_path / "dpviz", ignore=lambda _, names: [name for name in names if "." in name and ".py" not in name])
    monkeypatch.setattr(stored, "PACKAGE", tmp_path / "dpviz")
    return paper, figure


def edit(name, text):
    path = stored.PACKAGE / name
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def test_a_stored_run_is_the_run_and_says_how_it_was_made(small):
    paper, figure = small
    found, again = load_stored(paper, figure), run_figure(paper, figure, size=PAPER)
    assert found.run.table.equals(again.table)
    assert [str(each) for each in found.run.verdicts] == [str(each) for each in again.verdicts]
    assert found.data == digest_data(figure.prepare.data(SETTINGS))
    assert found.changes == []


def test_a_changed_mechanism_or_experiment_marks_it_and_a_comment_does_not(small):
    edit(QUADTREE, "\n# a comment\n")
    edit("app/pages/papers.py", "\nOTHER = 1\n")
    assert load_stored(*small).changes == []
    edit(QUADTREE, "\nOTHER = 1\n")
    edit("papers/psd.py", "\nOTHER = 1\n")
    assert load_stored(*small).changes == [QUADTREE, "papers/psd.py"]


def test_a_run_is_confirmed_by_its_first_seed_unless_other_numbers_come_out(small, monkeypatch):
    edit(QUADTREE, "\nOTHER = 1\n")
    assert load_stored(*small).changes
    assert "the first seed makes the same" in confirm_run(*small)
    assert load_stored(*small).changes == []
    noisier = Quadtree.release
    monkeypatch.setattr(Quadtree, "release", lambda own, points, budget, entropy: noisier(own, points, budget, Entropy.seeded(99)))
    with pytest.raises(AssertionError):
        confirm_run(*small)


def test_other_settings_of_the_size_mark_it(small):
    paper, figure = small
    larger = replace(figure.sizes[PAPER], settings=SETTINGS | {"queries": 6})
    assert load_stored(paper, replace(figure, sizes={PAPER: larger})).changes == ["settings"]


def test_without_comments_keeps_code_alone():
    source = '"""About."""\n\n# a comment\ndef one():\n    """Return\n    1."""\n    return "# 1"  # kept\n'
    assert without_comments(source) == 'def one():\n    return "# 1"  # kept'


def test_stored_runs_are_those_of_figures_at_their_largest_size():
    figures = {stored.stored_file(paper, figure): (paper, figure) for paper in PAPERS.values() for figure in paper.figures.values()}
    for path in sorted(stored.FOLDER.glob("*")):
        paper, figure = figures[path]
        assert load_stored(paper, figure).run.size == figure.largest


TABLES = (stored.PACKAGE / "docs" / "papers.md").read_text("utf-8")


@pytest.mark.parametrize("path", sorted(stored.FOLDER.glob("*")), ids=lambda path: path.stem)
def test_the_documentation_has_the_stored_verdicts(path):
    paper, figure = find_figure(*path.stem.split("-"))
    section = TABLES[TABLES.index(f"`dpviz paper {paper.key} FIGURE`") :]
    for verdict in load_stored(paper, figure).run.verdicts:
        _, *numbers = verdict.decisive
        value, low, high = (format_decimal(number, 3) for number in numbers)
        claim = f"{'Not in the paper: ' * verdict.claim.ours}{verdict.claim.text}"
        row = next(line for line in section.splitlines() if line.startswith(f"| {figure.key} | {claim} |"))
        assert row.endswith((f" | {verdict.answer}: {value} [{low}, {high}] |", f"{verdict.answer}: {value} [{low}, {high}] | the same |"))
