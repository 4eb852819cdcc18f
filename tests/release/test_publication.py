"""The curator's words: plain text that says what this is and whom to ask."""

import pytest

from dpviz.errors import SettingError
from dpviz.release.manifest import Publication

WORDS = {"name": "n", "curator": "c", "description": "", "region": "", "intended_use": "", "draws": 1, "truth_seen": False}


def test_any_plain_text_is_taken_as_it_is():
    odd = "<b>=1</b>\n\t\u202eשלום 🗺 \"'"
    assert Publication(**WORDS | {"name": odd, "description": odd}).name == odd


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"name": " \n"}, "name must not be blank"),
        ({"curator": ""}, "curator must not be blank"),
        ({"region": 3}, "region must be a text"),
        ({"region": None}, "region must be a text"),
        ({"dataset_cap": 2}, "dataset_cap must be a text"),
        ({"dataset_cap": "epsilon 0.5"}, "dataset_cap must be exact"),
        ({"dataset_spent": "rho 1/0"}, "dataset_spent must be exact"),
        ({"description": "x" * 20_001}, "description is longer than 20,000"),
        ({"description": "a\x00b"}, "control character"),
        ({"intended_use": "a\rb"}, "control character"),
        ({"name": "\ud800"}, "lone surrogate"),
        ({"dataset_spent": "\x1b[31m"}, "control character"),
        ({"draws": 0}, "draws must be a whole number"),
        ({"draws": True}, "draws must be a whole number"),
        ({"draws": 1.0}, "draws must be a whole number"),
        ({"truth_seen": 0}, "truth_seen must be True or False"),
    ],
)
def test_what_is_missing_too_long_or_not_printable_is_refused_by_its_name(wrong, rule):
    with pytest.raises(SettingError, match=rule):
        Publication(**WORDS | wrong)


@pytest.mark.parametrize("name", ["draws", "truth_seen", "name", "intended_use"])
def test_nothing_is_claimed_by_leaving_it_out(name):
    with pytest.raises(TypeError):
        Publication(**{key: value for key, value in WORDS.items() if key != name})
