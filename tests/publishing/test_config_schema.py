"""The JSON Schemas of configurations are those that the dataclasses declare, and take what dpviz takes."""

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from dpviz.publishing.config_schema import RELEASE_FILE, STUDY_FILE, release_schema, study_schema
from tests.publishing.configs import FLOWS, POINTS, changed

ROOT = Path(__file__).parents[2]
CONFIGS = [*(ROOT / "sample_data").glob("*.toml"), *(ROOT / "tests" / "golden" / "configs").glob("*.toml")]


@pytest.mark.parametrize(("path", "make"), [(RELEASE_FILE, release_schema), (STUDY_FILE, study_schema)])
def test_what_is_stored_is_what_the_dataclasses_declare(path, make):
    """`python -m dpviz.publishing.config_schema` writes both."""
    assert json.loads(path.read_text("utf-8")) == make()
    Draft7Validator.check_schema(make())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_configurations_are_valid(path):
    tables = tomllib.loads(path.read_text("utf-8"))
    Draft7Validator(study_schema() if isinstance(tables["mechanism"], list) else release_schema()).validate(tables)


def test_unknown_keys_and_values_of_another_kind_are_not():
    check = Draft7Validator(release_schema())
    assert check.is_valid(POINTS)
    assert check.is_valid(FLOWS)
    for path, value in (("data.point", "a"), ("budget.epsilon", True), ("domain.bounds", "a"), ("seed", 7), ("mechanism.key", None)):
        assert not check.is_valid(changed(POINTS, path, value)), path
