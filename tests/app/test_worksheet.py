"""Every address of the worksheet opens the stop with the settings that it names, and the teacher's numbers are those of the figures."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from dpviz.app.pages.learn.path import BY_KEY, PATHS, SHORT
from dpviz.app.session.widgets import check_link
from dpviz.lessons import SHORT_PATH
from tests.app.start import pages_app, query_of
from tests.often import often

TEXT = (Path(__file__).parents[2] / "dpviz" / "docs" / "worksheet.md").read_text("utf-8")
STUDENTS, TEACHER = TEXT.split("## For the teacher\n")
LINKS = re.findall(r"\[([^\]]+)\]\((learn\?[^)]+)\)", STUDENTS)
ADDRESSES = list(dict.fromkeys(address for _, address in LINKS))


def query_in(address):
    return dict(parse_qsl(address.partition("?")[2], strict_parsing=True))


def test_addresses_can_be_read_on_paper_and_lead_along_the_short_path():
    assert all(text == address for text, address in LINKS)
    assert list(dict.fromkeys(query_in(address)["stop"] for address in ADDRESSES)) == list(SHORT_PATH)
    assert {f"learn?stop={key}" for key in SHORT_PATH} <= set(ADDRESSES), "each stop opens with its question"


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_names_settings_that_there_are_and_none_that_stands_at_its_default(address):
    query = query_in(address)
    lesson, refused = check_link(BY_KEY[query["stop"]], query)
    assert refused == []
    assert {"stop": query["stop"], **lesson.to_query()} == query


@pytest.mark.parametrize("address", often(ADDRESSES, [ADDRESSES[1]]))
def test_an_address_opens_the_stop_on_the_short_path_with_its_settings_and_its_question(address):
    query = query_in(address)
    app = pages_app("learn", query)
    lesson = BY_KEY[query["stop"]]
    assert app.header[0].value == f"{PATHS[SHORT].index(lesson.key) + 1}. {lesson.title}"
    assert query_of(app) == query
    assert app.radio(key=f"learn answer {lesson.key}").value is None
    assert bool(app.metric) == (len(query) > 1), "with other settings, the figure has been moved"


STATED = {"one_person": [3], "sums": [2], "zoom": [1, 2], "differencing": [1], "interval": [0]}
"""The figures whose values the teacher's page states for every address of a stop."""


@pytest.mark.parametrize("address", often(ADDRESSES, [each for each in ADDRESSES if "interval" in each]))
def test_the_teachers_page_states_what_the_figures_show(address):
    key = query_in(address)["stop"]
    (row,) = [line for line in TEACHER.splitlines() if line.startswith(f"| {SHORT_PATH.index(key) + 1} |")]
    lesson, _ = check_link(BY_KEY[key], query_in(address))
    figures = lesson.show().figures
    assert [figures[index].value for index in STATED[key] if figures[index].value not in row] == []
