"""A configuration is a page and a page a configuration: what is opened is saved again, and what does not fit changes nothing."""

from dataclasses import replace

import pytest

from dpviz.app.state.kinds import KINDS, POINTS
from dpviz.app.state.page import usual_page
from dpviz.app.state.toml import read_toml, write_toml
from dpviz.app.state.values import CURATE, PLACE_ALONE
from dpviz.errors import DpvizError
from dpviz.publishing.config import from_tables
from dpviz.publishing.toml_tables import to_text
from tests.app import test_opened_config as opened
from tests.app.state.pages import FILLED
from tests.publishing.configs import changed
from tests.publishing.test_by_slot import BY_HOUR
from tests.publishing.test_by_slot import KINDS as CATEGORIES

POINT_CASES = {name: case[0] for name, case in opened.POINT_CASES.items()}
TRIP_CASES = {name: case[0] for name, case in opened.TRIP_CASES.items()}


def page_in_curate(kind):
    page = usual_page(kind)
    return replace(page, draft=replace(page.draft, mode=CURATE))


@pytest.mark.parametrize("page", FILLED.values(), ids=FILLED)
def test_what_is_saved_opens_as_the_same_release(page):
    text = write_toml(page)
    again = read_toml(text.encode(), page_in_curate(page.draft.kind))
    assert again.draft.to_config() == page.draft.to_config()
    assert write_toml(again) == text


@pytest.mark.parametrize("tables", [*POINT_CASES.values(), *TRIP_CASES.values()], ids=[*POINT_CASES, *TRIP_CASES])
def test_what_the_command_line_takes_is_saved_as_it_was(tables):
    config = from_tables(tables)
    page = read_toml(to_text(tables).encode(), page_in_curate(KINDS[config.family.name]))
    assert page.draft.to_config() == config


@pytest.mark.parametrize(("tables", "reason"), opened.REFUSED.values(), ids=opened.REFUSED)
def test_what_does_not_fit_is_refused(tables, reason):
    body = tables if isinstance(tables, bytes) else to_text(tables).encode()
    with pytest.raises(DpvizError) as error:
        read_toml(body, page_in_curate(POINTS))
    assert reason in str(error.value)


def test_a_series_of_releases_is_left_to_the_command_line():
    tables = changed(next(iter(POINT_CASES.values())), "dataset.series", {"protects": "person"})
    with pytest.raises(DpvizError, match="dpviz release CONFIG --period NAME makes them"):
        read_toml(to_text(tables).encode(), page_in_curate(POINTS))


@pytest.mark.parametrize("part", [part for part, _ in CATEGORIES.values()], ids=CATEGORIES)
def test_counts_by_category_are_saved_as_they_were(part):
    by_slot = changed(BY_HOUR, "data.per_slot", None) if "sum_between" in part else BY_HOUR
    tables = changed(changed(by_slot, "categories", part), "dataset.unit", "person")
    page = read_toml(to_text(tables).encode(), page_in_curate(KINDS["areas"]))
    assert page.draft.to_config() == from_tables(tables)
    alone = replace(page.draft, counted_by=PLACE_ALONE).to_config()
    assert (alone.categories, alone.data.slot, alone.data.per_slot) == (None, None, None)
