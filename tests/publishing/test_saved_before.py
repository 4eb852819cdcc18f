"""Configurations that an earlier version saved are read as they were."""

from pathlib import Path

import pytest

from dpviz.publishing.config import read_config, to_toml

SAVED = sorted((Path(__file__).parents[1] / "golden" / "configs").glob("*.toml"))  # never written again
UNITS = {"persons": "person", "records": "record", "sample": "record", "trips": "trip"}


def test_there_is_one_of_each_kind():
    assert [path.stem for path in SAVED] == sorted(UNITS)


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_saved_configuration_is_read_as_before(path):
    config = read_config(path)
    assert (config.dataset.unit, config.data.person) == (UNITS[path.stem], "user" if path.stem == "persons" else None)
    assert to_toml(config) == path.read_text("utf-8")
