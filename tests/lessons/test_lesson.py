"""Every lesson: its words, its settings and the link that carries them."""

import re

import pytest

from dpviz.app.session.widgets import read_link
from dpviz.errors import SettingError
from dpviz.lessons import GROUPS, LESSONS, SHORT_PATH
from dpviz.lessons.lesson import ShareBar
from dpviz.lessons.split import Split
from tests.often import often

LINKED = {"one_person", "sums", "split", "consistency", "leak", "structure", "homogeneity", "topdown", "interval", "releases"}
lessons = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.key)


def test_old_links_lead_to_their_lessons_and_each_has_a_key_of_its_own():
    keys = [lesson.key for lesson in LESSONS]
    assert set(keys) >= LINKED
    assert len(keys) == len(set(keys))
    assert all(re.fullmatch(r"[a-z_]+", key) for key in keys)


@lessons
def test_it_has_two_sentences_and_one_thing_to_try_and_its_share_bar_has_a_setting(lesson):
    text = lesson.text.replace("et al. ", "et al ")
    assert len(re.findall(r"\.(?:\s|$)", text)) == 2
    assert lesson.task.endswith((".", "?"))
    assert len(re.findall(r"[.?](?:\s|$)", lesson.task)) == 1
    if lesson.share_bar is not None:
        values = lesson().chosen()[lesson.share_bar.setting]
        assert len(values) == len(lesson.share_bar.parts)
        assert all(len(preset) == len(values) for preset in lesson.share_bar.presets.values())


@lessons
def test_it_asks_a_question_with_one_right_choice_and_says_what_to_say_in_class(lesson):
    assert lesson.question.endswith("?")
    assert 2 <= len(lesson.choices) <= 4
    assert len(set(lesson.choices)) == len(lesson.choices)
    assert all(0 < len(choice) <= 60 for choice in lesson.choices)
    assert 0 <= lesson.right < len(lesson.choices)
    assert 2 <= sentences(lesson.answer) <= 4
    assert 3 <= sentences(lesson.in_class) <= 6


@pytest.mark.parametrize("lesson", often(list(LESSONS), 3), ids=lambda lesson: lesson.key)
def test_the_figure_begins_with_less_than_answers_the_question(lesson):
    shown = lesson().show()
    begun = [chart for row in shown.asked for chart in row]
    assert begun
    assert len(begun) < len(shown.charts) or begun[0] is not shown.charts[0]


def sentences(text):
    return len(re.findall(r"[.?](?:\s|$)", text))


def test_the_short_path_has_five_lessons_and_the_groups_of_the_long_path_have_all():
    assert len(SHORT_PATH) == 5
    assert {key for key in SHORT_PATH if key not in {lesson.key for lesson in LESSONS}} <= {"zoom", "differencing"}
    assert len({lesson.right for lesson in LESSONS if lesson.key in SHORT_PATH}) > 1, "not always the last one"
    assert [lesson for group in GROUPS.values() for lesson in group] == list(LESSONS)


@lessons
def test_a_link_is_read_back_as_it_was_written(lesson):
    for rule in lesson.rules():
        for value in rule.choices or ((rule.low, rule.high) if isinstance(rule.default, int) and rule.high is not None else ()):
            value = bool(value) if isinstance(rule.default, bool) else value  # noqa: PLW2901
            one = lesson(**{rule.name: value})
            assert read_link(lesson, one.to_query()) == one


def test_shares_are_as_many_as_there_are_levels():
    with pytest.raises(SettingError, match="6 numbers"):
        Split(levels=(1.0,))


def test_a_preset_is_known_by_its_shares_whatever_they_add_up_to():
    bar = ShareBar(setting="shares", caption="c", parts=("a", "b"), presets={"even": (0.5, 0.5), "low": (0.1, 0.9)}, presets_help="h")
    assert [bar.preset_of(shares) for shares in ((3.0, 3.0), (1.0, 9.0), (1.0, 2.0))] == ["even", "low", None]
