"""README and CI say the same thing, and README names every mechanism."""

import re
import tomllib
from pathlib import Path

import dpviz as dv
from dpviz.__main__ import parser
from dpviz.cli.commands import COMMANDS
from dpviz.mechanisms import POINT_FAMILY
from dpviz.publishing.config import from_tables

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_every_mechanism_is_in_the_table():
    assert [key for key in (*dv.POINT_MECHANISMS, *dv.FLOW_MECHANISMS) if f"| `{key}` |" not in README] == []


def test_ci_runs_the_test_command_of_the_readme():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert [line.split(" -m ")[-1] for line in commands] == ["streamlit run app.py", "pytest"]
    assert r"s/^\(python3 -m venv .*pytest\)$/\1/p" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_linked_files_exist():
    links = [part.split(")")[0] for part in README.split("](")[1:]]
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_every_command_is_shown_and_is_understood_as_it_stands_there():
    shown = [line.partition("#")[0].split()[1:] for line in README.splitlines() if line.startswith("dpviz ")]
    assert {parser().parse_args(words).command for words in shown} == set(COMMANDS)


def test_the_configuration_that_is_shown_is_a_good_one():
    config = from_tables(tomllib.loads(re.search(r"```toml\n(.*?)```", README, re.DOTALL)[1]))
    assert config.mechanism.built(POINT_FAMILY).height == 8
    assert config.dataset.cap() == dv.PureBudget(2)


def test_exit_codes_are_said():
    assert "0 done; 1 refused" in README
    assert "130 interrupted" in README
