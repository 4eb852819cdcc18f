"""The public names: sorted, complete, documented."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import dpviz


def test_the_public_names_are_sorted_and_complete():
    constants = [name for name in dpviz.__all__ if name.isupper()]
    classes = [name for name in dpviz.__all__ if not name.isupper() and name[0].isupper()]
    functions = [name for name in dpviz.__all__ if name[0].islower()]
    assert dpviz.__all__ == sorted(constants) + sorted(classes) + sorted(functions)
    public = {name for name, value in vars(dpviz).items() if not name.startswith("_") and not isinstance(value, ModuleType)}
    assert public == set(dpviz.__all__)


def test_every_public_name_is_documented():
    objects = [getattr(dpviz, name) for name in dpviz.__all__]
    undocumented = [each for each in objects if (inspect.isclass(each) or inspect.isfunction(each)) and not inspect.getdoc(each)]
    assert undocumented == []


def test_public_methods_are_documented():
    classes = [getattr(dpviz, name) for name in dpviz.__all__ if inspect.isclass(getattr(dpviz, name))]
    missing = [
        f"{each.__name__}.{name}"
        for each in classes
        for name, member in vars(each).items()
        if not name.startswith("_") and callable(member) and not inspect.getdoc(member)
    ]
    assert missing == []


def test_every_error_raised_on_purpose_has_one_root():
    errors = [getattr(dpviz, name) for name in dpviz.__all__ if name.endswith("Error")]
    assert all(issubclass(error, dpviz.DpvizError) for error in errors)


def test_the_library_imports_no_extra():
    extras = ("streamlit", "pydeck", "altair", "duckdb", "dask", "distributed")
    code = f"import sys, dpviz; print([name for name in {extras} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_that_of_the_package():
    stated = re.search(r'^version = "(.*)"', (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]
    assert dpviz.__version__ == stated
