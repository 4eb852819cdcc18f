"""The Papers page: a link opens a figure, its verdict stands beside the chart, larger runs wait for a press and can be stopped."""

import math
import re
import threading

import pytest

from dpviz.app.jobs import figure as figure_module
from dpviz.app.jobs.job import STOPPED, STOPPING
from dpviz.app.pages.papers import PapersConfig
from dpviz.app.server.class_mode import ClassMode
from dpviz.app.session.cached import stored_run
from dpviz.app.session.widgets import read_link
from dpviz.papers import stored
from dpviz.papers.catalogue import PAPERS, find_figure
from dpviz.papers.stored import StoredRun
from tests.app.browse import until
from tests.app.seen import captions, fine, good
from tests.app.start import pages_app, query_of

HOSTILE = ["", "nan", "-1", "1e999", "999999999", "<script>", "[](x)" * 2000]


def papers_app(**link):
    return pages_app("papers", link)


def texts(app):
    return " ".join(each.value for each in app.markdown)


def shown_job(app):
    paper, figure, size, seeds = app.session_state["papers config"].chosen
    return app.session_state["papers jobs"].get((paper.key, figure.key, size, seeds))


@pytest.fixture
def slow_figures(monkeypatch):
    """Figures measure no seed before the event is set."""
    go, measure = threading.Event(), figure_module.measure_seeds
    monkeypatch.setattr(figure_module, "measure_seeds", lambda job: go.wait(20) and measure(job))
    yield go
    go.set()


@pytest.fixture
def nothing_stored(monkeypatch, tmp_path):
    """No run comes with the package."""
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    stored_run.clear()
    yield
    stored_run.clear()


def test_the_stored_verdicts_stand_there_at_once_with_what_made_them(slow_figures):
    app = good(papers_app(paper="psd", figure="3"))
    assert [each.value for each in app.subheader] == ["At the paper's size", "Run it yourself"]
    assert "its heights and its 600 queries per shape" in texts(app)
    assert texts(app).count("**The paper says:**") == len(find_figure("psd", "3")[1].claims)
    assert re.search(r"Made by dpviz \S+ with the seeds 1 to 10 on data of digest [0-9a-f]{16}", captions(app))
    assert app.get("vega_lite_chart")
    assert "A demonstration on less data" in captions(app)
    assert app.button(key="papers run"), "nothing runs before a press"
    assert "Demonstration" not in texts(app)


@pytest.mark.parametrize("changes", [[], ["mechanisms/points/quadtree.py"]])
def test_a_changed_source_marks_the_stored_verdicts(slow_figures, monkeypatch, changes):
    monkeypatch.setattr(StoredRun, "changes", changes)
    app = good(papers_app(paper="psd", figure="3"))
    assert ("Before this version" in texts(app)) == bool(changes)
    assert ("mechanisms/points/quadtree.py" in captions(app)) == bool(changes)


def test_a_link_opens_a_figure_with_its_verdict_chart_and_downloads():
    app = fine(papers_app(paper="psd", figure="2"))
    assert app.header[0].value.startswith("Figure 2: ")
    assert ":material/check_circle: Holds" in texts(app)
    assert "95 %" not in texts(app)
    assert "computed, nothing is random" in texts(app)
    assert len(app.get("vega_lite_chart")) == 1
    assert [button.proto.label for button in app.get("download_button")] == ["Picture (SVG)", "Picture (PNG)", "Table (CSV)"]
    assert [code.value.splitlines()[0] for code in app.code] == [
        "from dpviz import papers",
        "dpviz paper psd 2 --size small --seeds 1 --output dpviz-psd-2.svg",
    ]
    assert query_of(app) == {"paper": "psd", "figure": "2"}
    assert "below 1 in every case" in captions(app)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_stranger_wrote_in_a_link_falls_back(text):
    assert read_link(PapersConfig, dict.fromkeys(("paper", "figure", "size", "seeds"), text)) == PapersConfig()


def test_a_larger_run_waits_for_a_press_shows_its_progress_and_can_be_stopped(nothing_stored, slow_figures):
    app = good(papers_app(paper="psd", figure="3", size="paper", seeds="2"))
    assert not app.get("vega_lite_chart")
    assert "its heights and its 600 queries" in texts(app)
    assert texts(app).count("**The paper says:**") == len(find_figure("psd", "3")[1].claims)
    good(app.button(key="papers run").click().run())
    assert app.get("progress")[0].proto.text.startswith("Running: 0 of 2 seeds")
    good(app.button(key="papers stop").click().run())
    assert app.get("progress")[0].proto.text.startswith("Stopping after this seed: 0 of 2 seeds")
    slow_figures.set()
    until(lambda: shown_job(app).state == STOPPED, "the end of the seed")
    assert "Stopped after 0 of 2 seeds" in texts(good(app.run()))
    assert app.button(key="papers again")
    assert query_of(app) == {"paper": "psd", "figure": "3", "size": "paper", "seeds": "2"}


def test_the_page_says_what_runs_and_for_how_long_and_that_one_seed_is_too_few():
    app = good(papers_app(paper="htf", figure="3", size="paper", seeds="1"))
    assert "**This run:** The paper" in texts(app)
    assert "none is a verdict on the paper" in texts(app)
    assert "About 3 minutes on one core" in captions(app)  # two of ten seeds


def test_a_small_run_says_at_each_verdict_that_it_is_a_demonstration():
    app = good(papers_app(paper="psd", figure="6", seeds="2"))
    assert not app.get("vega_lite_chart"), "nothing runs before a press"
    good(app.button(key="papers run").click().run())
    until(lambda: shown_job(app).has_ended, "the end of the run")
    good(app.run())
    verdicts = [each.value for each in app.markdown if each.value.startswith("### ")]
    assert len(verdicts) == len(find_figure("psd", "6")[1].claims)
    assert all("Demonstration on less data" in each for each in verdicts)


@pytest.mark.slow
def test_another_figure_ends_a_run(slow_figures):
    app = good(papers_app(paper="psd", figure="7a"))
    good(app.button(key="papers run").click().run())
    assert app.button(key="papers stop")
    first = shown_job(app)
    app.radio(key="papers figure psd").set_value("2")
    slow_figures.set()
    good(app.run())
    assert app.header[0].value.startswith("Figure 2: ")
    assert first.state in (STOPPING, STOPPED)


def test_in_a_class_a_link_to_more_than_the_small_size_says_what_is_shown(monkeypatch):
    monkeypatch.setattr("dpviz.app.server.class_mode._mode", ClassMode(code=None, memory=math.inf))
    monkeypatch.setattr("dpviz.app.pages.papers._find_job", lambda *_: None)
    large = [each.value for each in papers_app(paper="psd", figure="3", size="paper").warning]
    assert len(large) == 1
    assert "smallest size of each figure" in large[0]
    assert papers_app(paper="psd", figure="3", seeds="50").warning
    assert not papers_app(paper="psd", figure="3", seeds="2").warning


def test_every_figure_has_a_link():
    for paper in PAPERS.values():
        for key in paper.figures:
            config = read_link(PapersConfig, {"paper": paper.key, "figure": key})
            assert (config.chosen[0].key, config.build().key) == (paper.key, key)
