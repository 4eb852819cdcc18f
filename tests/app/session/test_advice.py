"""Advice of errors names controls in the app and keys on the command line, never an argument in Python."""

import ast
import re
from pathlib import Path

import pytest

import dpviz
from dpviz.app.components.fields import problem_with
from dpviz.app.session.advice import advise_in_app
from dpviz.cli.advice import advise_on_command_line
from dpviz.data.reading.points import inspect_points
from tests.app.seen import errors
from tests.app.start import uploaded

ROOT = Path(dpviz.__file__).parent
PYTHON = re.compile(r"\bpass \w+=|\b(?!EPSG)[a-z_]{3,}=(?:'|True|\.\.\.|\[)")


def texts_of(path):
    """The texts of a module that are no docstrings; the fields of a formatted text are left out."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("path", sorted((ROOT / "data").rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_advice_names_an_argument(path):
    advice = [text for text in texts_of(path) if " " in text.strip() and PYTHON.search(text)]
    advice = [text for text in advice if not text.startswith(("SELECT", " ")) or "pass" in text]
    for advise in (advise_in_app, advise_on_command_line):
        assert [text for text in map(advise, advice) if PYTHON.search(text)] == []


def test_a_bad_row_is_left_out_by_a_control():
    assert "switch on “Leave out bad rows”" in errors(uploaded(b"lon,lat\n-118.2,34.1\nfar,25.5\n"))


def test_other_texts_stay():
    assert advise_in_app("The file is damaged.") == "The file is damaged."
    assert problem_with(lambda: inspect_points("no such file.csv"))
