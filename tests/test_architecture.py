"""The house keeps its order: imports run one way, and nothing stands where it does not belong."""

import ast
import re
import subprocess
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dpviz"
ORDER = [
    *("errors", "codec", "arrays", "amounts", "bundled", "arrow_memory", "cards", "registry", "families"),
    *("space", "data", "samples", "privacy", "release"),
    *("mechanisms", "evaluation", "view", "papers", "lessons", "publishing", "cli", "app", "__main__"),
]
FRONT = {(f"{name}.py",) for name in ("__init__", "public", "attacks", "contrasts", "noise", "reading", "renamed")}
FORBIDDEN = {"release": {"data", "mechanisms"}, "view": {"data", "mechanisms"}}
ONLY_IN = {"streamlit": {"app"}, "pydeck": {"view"}, "altair": {"view", "papers", "lessons", "app"}}
TOP_LEVEL = {"pyproject.toml", "README.md", "app.py", "dpviz", "tests", "assets", "sample_data", "LICENSE", "CITATION.cff"}


@cache
def imports_of(source):
    """The import statements of a module, wherever in the file, and its docstring."""
    tree = ast.parse(source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)], ast.get_docstring(tree)


def imported(source):
    """Dotted names of everything a module imports."""
    names = []
    for node in imports_of(source)[0]:
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
        assert not getattr(node, "level", 0), "relative imports hide where a name comes from"
    return names


def violations(room, source):
    """What a module in `room` imports against the rules."""
    found = []
    for name in imported(source):
        first, _, rest = name.partition(".")
        if first == "dpviz" and rest:
            other = rest.partition(".")[0]
            if not {room, other} <= set(ORDER) or ORDER.index(other) > ORDER.index(room) or other in FORBIDDEN.get(room, ()):
                found.append(name)
        if first == "dpviz" and not rest and room != "__main__":  # the version is defined there
            found.append("dpviz: import from the module that defines the name")
        if first in ONLY_IN and room not in ONLY_IN[first]:
            found.append(name)
    return found


def modules_in(source, known):
    """The known modules that a module imports: of `from room import name` the module `room.name`, if there is one, else the room."""
    found = set()
    for node in imports_of(source)[0]:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known if names <= known else {node.module, *(names & known)}
    return found & known


def files():
    """Every file of the package but its front and the lists of public names, with the room it is in."""
    paths = [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))]
    return [(path.parts[0].removesuffix(".py"), PACKAGE / path) for path in paths if path.parts not in FRONT]


def test_imports_run_one_way():
    found = {path: violations(room, path.read_text("utf-8")) for room, path in files()}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("space", "from dpviz.data.points import PointCounts"),
        ("view", "def late():\n    import dpviz.data.points"),
        ("mechanisms", "import streamlit as st"),
        ("privacy", "from dpviz import Domain"),
        ("a new room", "from dpviz.space import domain"),
    ],
)
def test_a_planted_violation_is_caught(room, source):
    assert violations(room, source)


def below(name):
    """A module's place in the order inside the room `data`: what every part needs, then reading, then counting."""
    return next((place for place, part in ((2, "dpviz.data.counting"), (1, "dpviz.data.reading")) if f"{name}.".startswith(f"{part}.")), 0)


def test_private_counts_need_no_file_and_reading_needs_no_counting():
    found = []
    for _, path in files():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if name.startswith("dpviz.data."):
            found += [(name, other) for other in imported(path.read_text("utf-8")) if below(other) > below(name)]
    assert found == []
    assert below("dpviz.data.counting.job") > below("dpviz.data.reading.safety") > below("dpviz.data.points")


def test_no_modules_import_each_other():
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in PACKAGE.rglob("*.py")}
    modules = {name: modules_in(path.read_text("utf-8"), paths.keys()) for name, path in paths.items()}
    TopologicalSorter(modules).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter(modules | {"dpviz.errors": {"dpviz.space.domain"}}).prepare()


APP_ORDER = ("state", "server", "jobs", "session", "components", "cards", "payment", "modes", "pages")
PAGES_ORDER = ("points", "areas", "trips", "compare", "learn", "release", "papers", "help", "start")


def wrong_in_app(name, others):
    """What a module of the app imports from a folder further right, or from a page further right."""
    for prefix, order in (("dpviz.app.", APP_ORDER), ("dpviz.app.pages.", PAGES_ORDER)):
        if name.startswith(prefix):
            place = order.index(name.removeprefix(prefix).partition(".")[0])
            inside = [other for other in others if other.startswith(prefix)]
            yield from (other for other in inside if order.index(other.removeprefix(prefix).partition(".")[0]) > place)


def test_folders_of_the_app_import_one_way():
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for _, path in files()}
    modules = {name: modules_in(path.read_text("utf-8"), set(names.values())) for path, name in names.items()}
    wrong = {name: sorted(wrong_in_app(name, others)) for name, others in modules.items() if name not in ("dpviz.app", "dpviz.app.pages")}
    assert {name: found for name, found in wrong.items() if found} == {}
    assert list(wrong_in_app("dpviz.app.cards.unit", ["dpviz.app.pages.start", "dpviz.app.state.page"])) == ["dpviz.app.pages.start"]
    assert list(wrong_in_app("dpviz.app.pages.points.page", ["dpviz.app.pages.areas.page"])) == ["dpviz.app.pages.areas.page"]


def test_files_say_what_they_are():
    texts = {path: path.read_text("utf-8") for _, path in files()}
    assert [path for path, text in texts.items() if text.strip() and not imports_of(text)[1]] == []
    assert [path for path in texts if path.stem in {"utils", "helpers", "common", "misc"}] == []


def test_the_top_level_holds_exactly_what_was_agreed_and_app_py_little():
    assert len((ROOT / "app.py").read_text("utf-8").splitlines()) < 20
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("not a git checkout: the top level cannot be distinguished from build products")
    top = {name.partition("/")[0] for name in listed}
    assert {name for name in top if not name.startswith(".")} == TOP_LEVEL


def test_only_what_shows_objects_looks_up_another_room_by_its_name():
    found = {(room, other) for room, path in files() for other in re.findall(r'import_module\(f?"dpviz\.(\w+)', path.read_text("utf-8"))}
    assert {(room, other) for room, other in found if room != other} == {("cards", "view")}
