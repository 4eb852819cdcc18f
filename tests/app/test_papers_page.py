"""The Papers page: a link opens a figure, its verdict stands beside the chart, larger runs wait for a press and can be stopped."""

import threading

import pytest

from dpviz.app.jobs import DONE, FAILED, RUNNING, STOPPED, FigureJob
from dpviz.app.papers_page import PapersConfig
from dpviz.app.session import read_link
from dpviz.papers.catalogue import PAPERS, find_figure
from tests.app.seen import captions, fine, good
from tests.app.start import pages_app, query_of

HOSTILE = ["", "nan", "-1", "1e999", "999999999", "<script>", "[](x)" * 2000]


def papers_app(**link):
    return pages_app("papers", link)


def texts(app):
    return " ".join(each.value for each in app.markdown)


@pytest.fixture
def slow_figures(monkeypatch):
    """Figures measure no seed before the event is set."""
    go, measure = threading.Event(), FigureJob._work
    monkeypatch.setattr(FigureJob, "_work", lambda job: go.wait(20) and measure(job))
    yield go
    go.set()


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


def test_a_larger_run_waits_for_a_press_shows_its_progress_and_can_be_stopped(slow_figures):
    app = good(papers_app(paper="psd", figure="3", size="paper", seeds="2"))
    assert not app.get("vega_lite_chart")
    assert "its heights and its 600 queries" in texts(app)
    good(app.button(key="papers run").click().run())
    assert app.get("progress")[0].proto.text.startswith("Running: 0 of 2 seeds")
    good(app.button(key="papers stop").click().run())
    assert "Stopped after 0 of 2 seeds" in texts(app)
    assert query_of(app) == {"paper": "psd", "figure": "3", "size": "paper", "seeds": "2"}
    slow_figures.set()


@pytest.mark.slow
def test_a_small_run_starts_by_itself_and_another_figure_ends_it(slow_figures):
    app = good(papers_app(paper="psd", figure="7a"))
    assert app.button(key="papers stop")
    first = next(iter(app.session_state["papers jobs"].values()))
    app.radio(key="papers figure psd").set_value("2")
    slow_figures.set()
    good(app.run())
    assert app.header[0].value.startswith("Figure 2: ")
    assert first.state == STOPPED


def test_a_job_measures_seed_by_seed_and_keeps_those_that_are_done():
    paper, figure = find_figure("psd", "2")
    job = FigureJob(paper, figure, "small", 1, [])
    assert (job.state, job.run()) == (RUNNING, None)
    job.start(20)
    assert (job.state, job.run().verdicts[0].answer) == (DONE, "holds")
    failed = FigureJob(paper, figure, "none", 1, [])
    failed.start(20)
    assert (failed.state, failed.error) == (FAILED, "This figure has no size 'none'; it has small.")


def test_every_figure_has_a_link():
    for paper in PAPERS.values():
        for key in paper.figures:
            config = read_link(PapersConfig, {"paper": paper.key, "figure": key})
            assert (config.chosen[0].key, config.build().key) == (paper.key, key)
