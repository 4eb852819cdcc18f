"""The start page: what dpviz is for, and pictures that open the page they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.app.components.panes import load_deck
from dpviz.app.pages.compare.earlier import start_when_shown
from dpviz.app.pages.compare.state import COMPARE
from dpviz.app.server.class_mode import is_class
from dpviz.app.session.page_state import PageState
from dpviz.app.session.widgets import is_dark
from dpviz.bundled import folder
from dpviz.families import FAMILIES, POINT_FAMILY


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A picture on the start page, and what it opens.

    Attributes:
        title: a few words.
        text: one sentence on what is to be seen.
        picture: name of the file in `assets` for a light theme, made from a real run.
        page: name of a family, "compare" or "learn".
        link: the parameters of the page's address.
    """

    title: str
    text: str
    picture: str
    page: str
    link: Mapping[str, str]

    def picture_in(self, theme: str) -> str:
        """Return the name of the file in `assets` for a "light" or a "dark" theme."""
        return self.picture.replace(".webp", "_dark.webp") if theme == "dark" else self.picture

    @property
    def page_state(self) -> PageState | None:
        """State of the page; None for a page without one."""
        states: dict[str, PageState] = {"compare": COMPARE}
        return FAMILIES[self.page].page.state if self.page in FAMILIES else states.get(self.page)


_BUDGETS = '{"mechanism":"region_tree","settings":{},"epsilon":"0.005","delta":1e-06}'
_CLASS = {
    "mechanism": "path_tree",
    "epsilon": "0.1",
    "panes": '[[0,"True"],[1,"Released"],[0,"Released"],[2,"Released"]]',
    "second": '{"mechanism":"path_tree","settings":{},"epsilon":"0.5","delta":1e-06}',
    "third": '{"mechanism":"path_tree","settings":{},"epsilon":"0.02","delta":1e-06}',
    "present": "True",
}
_THREE = {
    "mechanisms": '["path_tree"]',
    "low": "0.02",
    "high": "2",
    "steps": "3",
    "repeats": "2",
    "picked": '[["Path-budget tree",2],["Path-budget tree",0.2],["Path-budget tree",0.02]]',
}
PRESETS = (
    Preset(
        title="A class of forty",
        text="Los Angeles, true and at ε 0.5, 0.1 and 0.02, large enough for a room: centres stay, streets blur, noise invents people.",
        picture="preset_class.webp",
        page="points",
        link=_CLASS,
    ),
    Preset(
        title="Tracts of a city at two budgets",
        text="Made-up visits per census tract with ε 0.005 and ε 1: what a small budget costs.",
        picture="preset_tracts.webp",
        page="areas",
        link={"mechanism": "region_tree", "level": "2", "epsilon": "1", "left": "Second run", "second": _BUDGETS},
    ),
    Preset(
        title="A city at three epsilons",
        text="The truth, and one mechanism with ε 2, 0.2 and 0.02: a small study, which begins by itself.",
        picture="preset_epsilons.webp",
        page="compare",
        link=_THREE,
    ),
    Preset(
        title="Towns of a country",
        text="21,408 towns and villages, true and released: the pattern of the country survives, and some appear where there are none.",
        picture="preset_towns.webp",
        page="points",
        link={"mechanism": "path_tree", "sample": "us_places", "epsilon": "1", "zoom": "5"},
    ),
    Preset(
        title="Flights",
        text="Seven million flights between 51 states at ε 0.05: large flows survive the noise, small ones are dashed.",
        picture="preset_flights.webp",
        page="trips",
        link={"sample": "us_flights", "mechanism": "fitted_tree", "epsilon": "0.05", "level": "2", "top": "1500"},
    ),
    Preset(
        title="Commuters",
        text="Made-up commuters between 217 counties, on three levels that add up.",
        picture="preset_commuters.webp",
        page="trips",
        link={"sample": "northeast_commuters", "mechanism": "fitted_tree", "epsilon": "1", "level": "3", "top": "500"},
    ),
    Preset(
        title="One person's routes without a bound",
        text="50,000 positions of one invented person, each protected by itself: in the release, home and ways are plain to see.",
        picture="preset_routes.webp",
        page="points",
        link={"mechanism": "path_tree", "sample": "daily_routes", "epsilon": "0.5", "zoom": "8"},
    ),
    Preset(
        title="The same person with a bound",
        text="The same ε protects the person: 10 of the positions count, the noise hides all of them, and no route is published.",
        picture="preset_bound.webp",
        page="points",
        link={"mechanism": "path_tree", "sample": "daily_routes_bounded", "epsilon": "0.5", "zoom": "8"},
    ),
    Preset(
        title="One person",
        text="Add or remove a single person: what an attacker can conclude, and what the bound per person is for.",
        picture="preset_person.webp",
        page="learn",
        link={"stop": "one_person"},
    ),
)
_COLUMNS = 3


def start_page(pages: Mapping[str, StreamlitPage]) -> None:
    """Show the start page.

    Args:
        pages: the pages that it opens, by the names of families, "compare" and "learn".
    """
    st.title("What would you publish?", anchor=False)
    st.markdown(
        "Counts of people by place, or of trips between places, are useful and dangerous: exact small numbers reveal individuals."
        " **Differential privacy** adds noise of a known size, so that whether any one person is in the data changes the odds of any"
        " published result by at most a factor that the budget ε sets. **dpviz** shows what such a release looks like *before* it exists."
    )
    with st.container(horizontal=True):
        labels = {family.name: family.page_kind.button for family in FAMILIES.values()}
        labels |= {"compare": "Compare mechanisms", "learn": "Learn in short lessons"}
        for page, label in labels.items():
            if st.button(label, type="primary" if page == POINT_FAMILY.name else "secondary"):
                st.switch_page(pages[page])
    columns: list[Any] = []
    for number, preset in enumerate(PRESETS):
        if number % _COLUMNS == 0:
            columns = st.columns(_COLUMNS, gap="medium")
        with columns[number % _COLUMNS]:
            _show_preset(preset, pages)
    _show_modes()
    load_deck(ahead=True)


def _show_preset(preset: Preset, pages: Mapping[str, StreamlitPage]) -> None:
    """Show a picture with a button that opens what it shows."""
    with st.container(key=f"picture {preset.title}"):  # the button covers the picture, too: see the style sheet
        st.image(folder("assets") / preset.picture_in("dark" if is_dark() else "light"), width="stretch", alt=preset.text)
        is_pressed = st.button(preset.title, key=f"preset {preset.title}", width="stretch")
    if is_pressed:
        state = preset.page_state
        if state is None:
            st.switch_page(pages[preset.page], query_params=dict(preset.link))
        state.open(preset.link)
        if state is COMPARE:
            start_when_shown()
        st.switch_page(pages[preset.page])
    st.caption(preset.text)


def _show_modes() -> None:
    """Say what the two modes are for, and what is not protected; of a class, that it has samples alone."""
    st.divider()
    if is_class():
        st.caption("This is the app of a class: samples only, and noise that is seeded, so that the same link shows everybody the same.")
        return
    left, right = st.columns(2, gap="large")
    left.markdown(
        "##### Teach\nPublic or made-up data and seeded noise: change anything, see the truth beside the release. What comes"
        " out is a simulation."
    )
    right.markdown(
        "##### Curate\nPrivate data and noise from the operating system: every draw spends budget, what is spent is shown,"
        " and the truth stays behind a switch."
    )
    st.caption(
        "Not protected: the domain, the mechanism and its settings, totals that you declare. Timing is not protected either. The app"
        " answers on this computer only, and to all of its users if it was started without a token."
    )
