"""The Papers page: the verdicts on a figure at its paper's size, which come with the package, and beside them a run of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import pandas as pd
import streamlit as st

from dpviz.amounts import format_decimal
from dpviz.app.components.words import show_table
from dpviz.app.jobs.figure import FigureJob, make_figure_job, run_of
from dpviz.app.jobs.job import STOPPING
from dpviz.app.jobs.results import Results
from dpviz.app.server.class_mode import is_class
from dpviz.app.session.cached import keeper, seeds_of_figure, stored_run
from dpviz.app.session.widgets import check_link, is_dark, show_error, show_refused_link, to_query, widget_for
from dpviz.app.state.linked import in_link
from dpviz.app.state.readers import choice_reader, describe_refused, number_reader
from dpviz.papers.catalogue import PAPERS
from dpviz.papers.claims import FAILS, HOLDS, UNDECIDED, Claim, Verdict
from dpviz.papers.figures import MOST_SEEDS, SMALL, Figure, Paper, Run
from dpviz.papers.stored import StoredRun
from dpviz.publishing.code import write_figure_python
from dpviz.view.escape import markdown

_CONFIG, _ADDRESS, _CHANGED, _JOBS, _PAPER = "papers config", "papers address", "papers changed", "papers jobs", "papers paper"
_REFUSED = "papers refused"
_MOST_JOBS = 8
_FEW_CASES, _CASES = 8, 330  # cases that are shown as a whole, and the height of more of them in pixels
_MOST_NAMED = 5  # changed source files
_PATIENCE, _TICK = 0.5, 1.0  # seconds that a start waits for the end, and between two refreshes
_FEWEST_SEEDS, _MOST_SHOWN_SEEDS = 2, 50  # one seed has no interval
_LOOKS = {HOLDS: ("green", "check_circle"), FAILS: ("red", "cancel"), UNDECIDED: ("orange", "help")}
_ABOUT = "All data here are made up or public and all noise is seeded: nothing is private, and nothing is spent."
_CUT = "A class has the smallest size of each figure, with its usual seeds. This link asks for more, and is shown within these limits."
_ABOUT_VERDICTS = "Verdicts are about a run, and none is a verdict on the paper: what differs is said below."
_DEMONSTRATION = "A demonstration on less data, which shows how the figure is made. The verdicts that count are those above."
_LESS_DATA = ":gray-badge[Demonstration on less data]"
_OLDER = ":orange-badge[:material/history: Before this version]"
_HOW = (
    "Every claim becomes a number for each case, such as the ratio of two errors. Each seed gives it once more; the interval holds what"
    " other seeds, but not other data, might give. *Holds*: the interval lies wholly on the claim's side, in every case. *Does not hold"
    " here*: in some case it lies wholly on the other side. *Undecided*: neither; more seeds may decide. (A claim about at least one case"
    ' holds by one, and fails only in all.) "We ask for" and "we allow" are our lines where the paper gives no number.'
)


_FIGURES = [key for paper in PAPERS.values() for key in paper.figures]
_SIZES = [name for paper in PAPERS.values() for figure in paper.figures.values() for name in figure.sizes]


@dataclass(frozen=True, kw_only=True)
class PapersConfig:
    """What the page shows, as a link carries it.

    Attributes:
        paper: key of a paper.
        figure: number of a figure; the first one of the paper if it has none of that number.
        size: name of a size; the smallest one of the figure if it has none of that name.
        seeds: how many, at least two; 0 for the usual number.
    """

    always_in_link: ClassVar[tuple[str, ...]] = ("paper", "figure")

    paper: str = field(default=next(iter(PAPERS)), metadata=in_link(choice_reader(*PAPERS)))
    figure: str = field(default="3", metadata=in_link(choice_reader(*_FIGURES)))
    size: str = field(default=SMALL, metadata=in_link(choice_reader(*_SIZES)))
    seeds: int = field(default=0, metadata=in_link(number_reader(0, MOST_SEEDS, int)))

    def build(self) -> Figure:
        """Return the figure."""
        figures = PAPERS[self.paper].figures
        return figures.get(self.figure, next(iter(figures.values())))

    def misfits(self) -> list[str]:
        """Return the names of parameters that the chosen paper or figure does not have."""
        fits = {"figure": self.figure in PAPERS[self.paper].figures, "size": self.size in self.build().sizes}
        return [name for name, does_fit in fits.items() if not does_fit]

    @property
    def chosen(self) -> tuple[Paper, Figure, str, int]:
        """Paper, figure, name of the size and number of seeds."""
        figure = self.build()
        size = self.size if self.size in figure.sizes and not is_class() else next(iter(figure.sizes))
        seeds = min(self.seeds, figure.sizes[size].seeds) if is_class() else self.seeds
        return PAPERS[self.paper], figure, size, figure.seeds(size, max(seeds, _FEWEST_SEEDS) if seeds else None)


def papers_page() -> None:
    """Show the page."""
    config = _current_config()
    paper, figure, size, seeds = config.chosen
    with st.sidebar:
        _choose_figure(paper, figure)
    query = to_query(replace(config, figure=figure.key))
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
    st.session_state[_ADDRESS] = st.query_params.to_dict()
    show_refused_link(st.session_state.get(_REFUSED, ""))
    st.header(f"Figure {markdown(figure.key)}: {markdown(figure.title)}", anchor=False)
    st.caption(f"{markdown(paper.title)}. {markdown(paper.source)}, {markdown(figure.section)}.")
    stored = stored_run(paper.key, figure.key)
    if stored is not None:
        _show_stored(stored)
    _show_own_run(paper, figure, size, seeds, is_demonstration=stored is not None)
    st.markdown("##### What differs from the paper")
    st.markdown(markdown(figure.differs))
    st.caption(_HOW)


def _show_stored(stored: StoredRun) -> None:
    """Show the run that comes with the package, and how it was made."""
    run, changes = stored.run, stored.changes
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("At the paper's size", anchor=False, width="content")
        if changes:
            st.markdown(_OLDER, width="content")
    st.markdown(f"{markdown(run.figure.sizes[run.size].about)} {_ABOUT_VERDICTS}")
    seeds = int(run.table["seed"].nunique())
    data = f"data of digest {markdown(stored.data)}" if stored.data else "data that each seed draws"
    st.caption(f"Made by dpviz {markdown(stored.version)} with the seeds 1 to {seeds} on {data}.")
    if changes:
        more = f" and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
        st.caption(f"Changed since then, so that this version may give other numbers: {markdown(', '.join(changes[:_MOST_NAMED]))}{more}.")
    _show_run(run, "stored")


def _show_own_run(paper: Paper, figure: Figure, size: str, seeds: int, *, is_demonstration: bool) -> None:
    """Show a run of the chosen size and seeds, its progress, or the button that starts it."""
    if is_demonstration:
        st.subheader("Run it yourself", anchor=False)
        if size != figure.largest:
            st.caption(_DEMONSTRATION)
    _choose_size(paper, figure, size, seeds)
    st.markdown(f"**This run:** {markdown(figure.sizes[size].about)}{'' if is_demonstration else f' {_ABOUT_VERDICTS}'}")
    job = _find_job(paper, figure, size, seeds)
    with st.container(key="papers-status"):
        _show_state(paper, figure, size, seeds, job)
    run = None if job is None else run_of(job)
    if run is not None:
        _show_run(run, "own")
    elif not is_demonstration:
        for claim in figure.claims:
            _show_claim(claim)


def _current_config() -> PapersConfig:
    """Return the configuration of this session; the address decides on the first visit, and after the browser's back button."""
    query, changed = st.query_params.to_dict(), st.session_state.pop(_CHANGED, False)
    is_shown = _PAPER in st.session_state and _ADDRESS in st.session_state
    has_gone_back = is_shown and not changed and query != st.session_state[_ADDRESS]
    if _CONFIG not in st.session_state or has_gone_back or (not is_shown and "paper" in query):
        read, names = check_link(PapersConfig, query)
        paper, figure, size, seeds = read.chosen
        used = {"paper": paper.key, "figure": figure.key, "size": size, "seeds": seeds}
        is_cut = is_class() and (size != read.size or seeds < read.seeds) and not figure.exact
        texts = describe_refused({name: used[name] for name in names}), _CUT if is_cut else ""
        st.session_state[_CONFIG], st.session_state[_REFUSED] = read, " ".join(filter(None, texts))
    config: PapersConfig = st.session_state[_CONFIG]
    return config


def _change(**values: Any) -> None:
    st.session_state[_CONFIG], st.session_state[_CHANGED] = replace(st.session_state[_CONFIG], **values), True
    st.session_state.pop(_REFUSED, None)


def _change_of(figure: Figure, **values: Any) -> None:
    """Change how a figure runs, unless another one is shown by now: a browser may still send a value of a widget that is gone."""
    if st.session_state[_CONFIG].build() is figure:
        _change(**values)


def _choose_figure(paper: Paper, figure: Figure) -> None:
    shown = widget_for(_PAPER, paper.key, lambda key: _change(paper=key, figure="", size=SMALL, seeds=0))
    st.selectbox("Paper", list(PAPERS), format_func=lambda key: PAPERS[key].title, **shown)
    st.radio(
        "Figure",
        list(paper.figures),
        format_func=lambda number: f"{markdown(number)}: {markdown(paper.figures[number].title)}",
        **widget_for(f"papers figure {paper.key}", figure.key, lambda number: _change(figure=number, size=SMALL, seeds=0)),
    )
    st.caption(_ABOUT)


def _choose_size(paper: Paper, figure: Figure, size: str, seeds: int) -> None:
    """Ask how large the run is, where there is a choice."""
    if figure.exact or is_class():  # a class has the smallest size with its usual seeds
        return
    left, right = st.columns(2, gap="medium")
    if len(figure.sizes) > 1:
        about = "How many records, levels and queries a run has."
        shown = widget_for(f"papers size {paper.key} {figure.key}", size, lambda name: _change_of(figure, size=name, seeds=0))
        left.select_slider("Size", list(figure.sizes), format_func=markdown, help=about, **shown)
    about = "Runs with fresh noise. More of them make the intervals narrower."
    shown = widget_for(f"papers seeds {paper.key} {figure.key}", seeds, lambda number: _change_of(figure, seeds=number))
    right.slider("Seeds", _FEWEST_SEEDS, max(_MOST_SHOWN_SEEDS, seeds), help=about, **shown)


def _find_job(paper: Paper, figure: Figure, size: str, seeds: int) -> FigureJob | None:
    """Return the run of what is chosen; a press starts one, but for a formula, of which nothing is random."""
    jobs: Results = st.session_state.setdefault(_JOBS, Results(_MOST_JOBS))
    key = (paper.key, figure.key, size, seeds)
    if key not in jobs and figure.exact:
        _start(paper, figure, size, seeds)
    return jobs.get(key)  # type: ignore[no-any-return]


def _start(paper: Paper, figure: Figure, size: str, seeds: int) -> None:
    """Start a run, and stop the one before; the last few are kept."""
    job = make_figure_job(paper, figure, size, seeds, seeds_of_figure(paper.key, figure.key, size))
    jobs: Results = st.session_state[_JOBS]
    jobs.drop(job.key)
    jobs.keep(job.key, job)
    keeper().take(job)
    job.start(_PATIENCE)


def _show_state(paper: Paper, figure: Figure, size: str, seeds: int, job: FigureJob | None) -> None:
    """Show the progress of a run, or why there is none, with the button that starts or stops it."""
    start = partial(_start, paper, figure, size, seeds)
    if job is None:
        st.button("Run", key="papers run", type="primary", on_click=start)
        seconds = figure.sizes[size].seconds * seeds / figure.sizes[size].seeds
        st.caption(f"About {seconds:.0f} seconds on one core." if seconds < 90 else f"About {seconds / 60:.0f} minutes on one core.")
    elif not job.has_ended:
        st.fragment(_tick, run_every=_TICK)(job)
    elif job.made < job.total:
        if job.error:
            show_error(job.error)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"Stopped after {int(job.made)} of {int(job.total)} seeds.")
            st.button("Go on", key="papers again", on_click=start)


def _tick(job: FigureJob) -> None:
    """Show the progress of a run until it has ended; a stop takes effect once the seed that is being measured is done."""
    if job.has_ended:
        st.rerun()
    stops, done = job.state == STOPPING, f"{int(job.made)} of {int(job.total)} seeds"
    with st.container(horizontal=True, vertical_alignment="center"):
        text = f"Stopping after this seed: {done} are done." if stops else f"Running: {done}. The verdict follows the last one."
        st.progress(job.share, text=text)
        st.button("Stop", key="papers stop", on_click=partial(job.stop, wait=False), disabled=stops)


def _show_run(run: Run, name: str) -> None:
    """Show the verdicts beside the charts, and what can be taken away; the name tells the runs of a page apart."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        for number, verdict in enumerate(run.verdicts):
            _show_verdict(verdict, f"{name} {number}", is_demonstration=run.is_demonstration)
    with right:
        if run.figure.explanation:
            st.markdown(markdown(run.figure.explanation))
        for number, chart in enumerate(run.charts()):
            st.altair_chart(chart, width="stretch", key=f"papers chart {name} {number}")
        _downloads(run, name)
        with st.expander("Table: the rows of every seed"):
            show_table(run.table, key=f"papers table {name}")


def _show_claim(claim: Claim) -> None:
    whose = "Not in the paper" if claim.ours else "The paper says"
    st.markdown(f"**{whose}:** {markdown(claim.text)}")


def _show_verdict(verdict: Verdict, name: str, *, is_demonstration: bool) -> None:
    """Show a claim with its verdict as a large line, the number that decided, and every case."""
    color, icon = _LOOKS[verdict.answer]
    answer = f"{verdict.answer[:1].upper()}{verdict.answer[1:]}"
    with st.container(border=True, key=f"papers-claim-{name}"):
        _show_claim(verdict.claim)
        st.markdown(f"### :{color}[:material/{icon}: {markdown(answer)}]{f' {_LESS_DATA}' if is_demonstration else ''}")
        st.markdown(markdown(verdict.finding if len(verdict.cases) == 1 else f"I{verdict.finding[1:]}"))
        st.caption(f"The claim needs a number {markdown(verdict.claim.need)}. {markdown(verdict.others)}")
        if verdict.reason:
            st.markdown(f"**Why:** {markdown(verdict.reason)}")
        if len(verdict.cases) > 1:
            height: int | Literal["content"] = _CASES if len(verdict.cases) > _FEW_CASES else "content"
            with st.expander(f"All {len(verdict.cases)} cases"), st.container(height=height, border=False):
                st.table(_list_cases(verdict))


def _list_cases(verdict: Verdict) -> pd.DataFrame:
    """Return the cases with their numbers as texts, which a narrow table wraps and does not cut."""
    value, low, high = ([format_decimal(number, 3) for number in verdict.cases[name]] for name in ("value", "low", "high"))
    intervals = [" to ".join(ends) for ends in zip(low, high, strict=True)]
    names = pd.Index([markdown(case) for case in verdict.cases["case"]], name="Case")
    return pd.DataFrame({"Number": value, "95 % interval": intervals}, index=names)


def _downloads(run: Run, key: str) -> None:
    """Offer the table and the picture as files, each made when its button is pressed, and the code that makes them."""
    name, dark = f"dpviz-{run.paper.key}-{run.figure.key}", is_dark()
    seeds = int(run.table["seed"].nunique())
    with st.container(horizontal=True, key=f"papers-take-{key}"):
        for kind, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
            st.download_button(
                f"Picture ({kind.upper()})",
                partial(run.picture, kind, dark=dark),
                f"{name}.{kind}",
                mime,
                on_click="ignore",
                key=f"papers picture {key} {kind}",
                help="The charts with the verdicts, in the colours of this theme.",
            )
        st.download_button(
            "Table (CSV)",
            lambda: run.table.to_csv(index=False),
            f"{name}.csv",
            "text/csv",
            on_click="ignore",
            key=f"papers table csv {key}",
            help="The rows of every seed.",
        )
        with st.popover("Code", help="The Python and the command that make this, to copy."):
            st.code(write_figure_python(run.paper.key, run.figure.key, run.size, seeds), language="python")
            command = f"dpviz paper {run.paper.key} {run.figure.key} --size {run.size} --seeds {seeds} --output {name}.svg"
            st.code(command, language="sh")
