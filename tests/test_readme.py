"""README and CI say the same thing, and README names every mechanism."""

from pathlib import Path

import dpviz as dv

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
