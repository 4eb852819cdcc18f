"""What the page of a family is: one description, from which Teach and Curate are made, and the navigation takes its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamlit.navigation.page import StreamlitPage

from dpviz.app.cards.cards import Cards
from dpviz.app.cards.expected_errors import Coarser, Expected, Levels
from dpviz.app.components.panes import Chosen
from dpviz.app.modes.live_runs import TeachRuns
from dpviz.app.modes.rail import RailParts
from dpviz.app.modes.shown_runs import ShownRuns
from dpviz.app.session.page_state import FamilyState
from dpviz.app.session.release import Releases
from dpviz.publishing.private_data import PrivateData
from dpviz.view.basemap import Bounds
from dpviz.view.canvas import Scene

Pages = Mapping[str, StreamlitPage]
"""The pages of the families in the navigation, by the names of the families; empty where there is none."""


def _nothing(*_: Any) -> None:
    """Show nothing more."""


@dataclass(frozen=True, kw_only=True)
class TeachParts:
    """What a page shows of its runs in Teach.

    Attributes:
        kinds: what a map may show of the first run; of others it shows what is released. () where the maps are not those of the view, and
            have titles of their own.
        part: what part of the data the maps show, such as "07 to 09"; "" for all of them.
        lead: what is to be known of the first run before its numbers.
        choose: asks what else the maps show, in the drawer *Map*.
        scene: the maps, made by `make_scene`; None where the data have no place on a map.
        on_earth: whether the maps lie somewhere; a plain plane has no streets.
        drawings: what is drawn on each map, in their order.
        take_chosen: takes what was clicked, given the drawing of its map; returns whether the page has changed.
        take_box: takes a box that was dragged, likewise.
        has_slots: whether there may be a map for each of a few slots.
        strip: shows what stands between maps and rail; None without it.
        without_map: shows what stands in place of the maps where there is no scene.
        contrasts: says what is to be known of runs that are contrasts.
        rail: ε, levels and what they are worth, under the maps; None without it.
        ask: shows the answers to questions, in the drawer *Ask*.
        figures: shows the key figures and the tabs, in the drawer *Numbers*.
    """

    kinds: Sequence[str]
    part: str = ""
    lead: str = ""
    choose: Callable[[], object] = _nothing
    scene: Scene | None = None
    on_earth: bool = True
    drawings: Sequence[Any] = ()
    take_chosen: Callable[[Any, Chosen], bool] = lambda *_: False
    take_box: Callable[[Bounds], bool] = lambda _: False
    has_slots: bool = False
    strip: Callable[[], object] | None = None
    without_map: Callable[[], object] = _nothing
    contrasts: Callable[[], object] = _nothing
    rail: RailParts | None = None
    ask: Callable[[], object] = _nothing
    figures: Callable[[], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class FamilyPage:
    """The page of a family, which `family_page` shows. A family names its own: `Family.page`.

    What is declared is what the controls of the data return. It has `data`, None while something is missing.

    Attributes:
        releases: makes the releases of the page; its `page` is the state of the page.
        controls: shows the controls of the data, and returns what is declared.
        nothing: what is declared where the data are refused.
        frame_of: returns the public frame of what is declared, as mechanisms take it; None while it is missing.
        protected: what a release protects, by what it protects one of, as of `FamilyState.protected`; "" where that is not known yet.
        not_protected: what it does not protect.
        below_data: in Teach, shows what belongs below the controls of the data, given the other pages.
        prepare: makes what the page shows first, so that it is in memory; the result is thrown away.

        weigh: returns the size of a run in Teach.
        room: the largest size of all runs that a session keeps; less in a class.
        runs: the runs of Teach.
        begin: prepares the page for the public frame of the runs, before they are shown.
        idle: returns the text of the row of the status while nothing runs, and what shows a small button after it, or None.
        teach: returns what the page shows of its runs.
        raw: what post-processing does to the counts, for the help of the switch to counts as first measured.
        streets: key of the switch of the street map.

        counts_of: returns frame, unit and bound of what is declared without a single record; None while one of them is missing.
        levels_of: returns the levels of such counts.
        coarser_of: returns larger cells that could be declared, as of `show_expected`, from what is declared; None without cells.
        unit_of: returns what is counted, in the plural, from the data, None while they are missing.
        show_declared: shows the map of what is declared, with what is expected, None while that is not known, and the unit.
        show_release: shows a draw with its controls, given the comparisons of its runs with the truth, each None where it may not be seen;
            moving a control draws no noise.
        count_useful: returns how many parts of a level of a release are useful, by its own errors; None of too many.
        promise_of: says of what is declared what a press protects, beside the price; "" where the text under the page says it all.
        below_mechanism: in Curate, asks what belongs between mechanism and budget.
        below_errors: shows what belongs under the expected errors, given the counts of `counts_of` and what is expected.
    """

    releases: Releases[Any, Any, Any]
    controls: Callable[[Cards], Any]
    nothing: Any
    frame_of: Callable[[Any], Any]
    protected: Mapping[str, str]
    not_protected: str
    below_data: Callable[[Pages], object] = _nothing
    prepare: Callable[[], object] = _nothing

    weigh: Callable[[Any], float]
    room: float
    begin: Callable[[Any], object] = _nothing
    idle: Callable[[ShownRuns], tuple[str, Callable[[], object] | None]]
    teach: Callable[[ShownRuns], TeachParts]
    raw: str
    streets: str

    counts_of: Callable[[Any], PrivateData | None]
    levels_of: Callable[[Any], Levels]
    coarser_of: Callable[[Any], Callable[[], Iterable[Coarser]] | None] = lambda _: None
    unit_of: Callable[[Any], str]
    show_declared: Callable[[Any, Expected | None, str], object]
    show_release: Callable[[Any, Sequence[Any]], object]
    count_useful: Callable[[Any, Any], int | None]
    promise_of: Callable[[Any], str] = lambda _: ""
    below_mechanism: Callable[[], object] = _nothing
    below_errors: Callable[[Any, Expected | None], object] = _nothing
    runs: TeachRuns = field(init=False)

    @property
    def state(self) -> FamilyState:
        """What the page is now, in this session."""
        return self.releases.page

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", TeachRuns(releases=self.releases, weigh=self.weigh, room=self.room))
