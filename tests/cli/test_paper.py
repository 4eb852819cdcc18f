"""`dpviz paper`: what there is, a figure that runs again, and the files that it writes."""

import json

import pandas as pd
import pytest

from dpviz.papers.catalogue import PAPERS


def test_every_figure_is_listed_with_its_claims(run):
    code, out, _ = run("paper", "list")
    assert code == 0
    assert all(f"dpviz paper {paper.key} {key} " in out for paper in PAPERS.values() for key in paper.figures)
    listed = json.loads(run("paper", "list", "--json")[1])
    assert [(entry["paper"], entry["figure"]) for entry in listed] == [
        (paper.key, key) for paper in PAPERS.values() for key in paper.figures
    ]


def test_a_figure_prints_its_verdicts_and_writes_what_the_ending_says(run, tmp_path):
    code, out, messages = run("paper", "psd", "2", "--output", str(tmp_path / "two.csv"))
    assert code == 0
    assert "Holds: in the least favourable of 6 cases" in out
    assert "Figure 2: 1 seed" in messages
    assert list(pd.read_csv(tmp_path / "two.csv").columns) == ["seed", "height", "split", "error"]
    facts = json.loads(run("paper", "psd", "2", "--json", "--output", str(tmp_path / "two.html"))[1])
    assert (facts["seeds"], facts["claims"][0]["verdict"], len(facts["claims"][0]["cases"])) == (1, "holds", 6)
    page = (tmp_path / "two.html").read_text("utf-8")
    assert "<svg" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["psdd", "3"], "Did you mean 'psd'?"),
        (["psd", "4"], "it has 2, 3, 4a"),
        (["psd"], "Give the number of a figure: 2, 3, 4a"),
        (["psd", "3", "--size", "smal"], "Did you mean 'small'?"),
        (["psd", "3", "--seeds", "0"], "from 1 to 100"),
        (["psd", "2", "--output", "two.pdf"], "must end in .svg, .png, .csv or .html"),
        (["psd", "2", "--output", "no/where/two.svg"], "must be in a folder that exists"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(run, words, said):
    code, out, messages = run("paper", *words)
    assert (code, out) == (2, "")
    assert said in messages


def test_nothing_is_overwritten(run, tmp_path):
    (tmp_path / "two.csv").write_text("mine")
    assert "exists already" in run("paper", "psd", "2", "--output", str(tmp_path / "two.csv"))[2]
    assert (tmp_path / "two.csv").read_text() == "mine"
