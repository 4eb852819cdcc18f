"""The public names: sorted, complete, documented."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import dpviz


def test_the_public_names_are_sorted_and_complete():
    constants = [name for name in dpviz.__all__ if name.isupper()]
    classes = [name for name in dpviz.__all__ if not name.isupper() and name[0].isupper()]
    functions = [name for name in dpviz.__all__ if name[0].islower()]
    assert dpviz.__all__ == sorted(constants) + sorted(classes) + sorted(functions)
    public = {name for name, value in vars(dpviz.public).items() if not name.startswith("_") and not isinstance(value, ModuleType)}
    assert public == set(dpviz.__all__)


def test_every_public_name_and_method_is_documented():
    objects = {name: getattr(dpviz, name) for name in dpviz.__all__}
    for owner, each in list(objects.items()):
        if inspect.isclass(each):
            objects |= {f"{owner}.{name}": member for name, member in vars(each).items() if not name.startswith("_") and callable(member)}
    assert [name for name, each in objects.items() if callable(each) and not inspect.getdoc(each)] == []


def test_every_public_class_and_function_has_an_example():
    objects = {name: getattr(dpviz, name) for name in dpviz.__all__}
    documented = {name: each for name, each in objects.items() if inspect.isclass(each) or inspect.isfunction(each)}
    assert [name for name, each in documented.items() if ">>>" not in (each.__doc__ or "")] == []


def test_every_error_raised_on_purpose_has_one_root():
    errors = [getattr(dpviz, name) for name in dpviz.__all__ if name.endswith("Error")]
    assert all(issubclass(error, dpviz.DpvizError) for error in errors)


def test_the_version_is_stated_once_and_citation_and_changes_agree():
    root = Path(__file__).parents[1]
    cited = re.search(r"^version: (.*)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)[1]
    newest = re.search(r"^## (\d+\.\S+?),", (root / "dpviz" / "docs" / "changes.md").read_text("utf-8"), re.MULTILINE)[1]
    assert dpviz.__version__ == cited == newest
    assert 'dynamic = ["version"' in (root / "pyproject.toml").read_text("utf-8")
