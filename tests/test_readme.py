"""What README and the pages of help say is so: commands, configurations, links, tests. Doctests run their Python."""

import ast
import dataclasses
import inspect
import operator
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path

import geopandas
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely

import dpviz as dv
import dpviz.papers.htf
from dpviz.__main__ import main, parser
from dpviz.cards import MapPage
from dpviz.cli.commands import COMMANDS
from dpviz.families import FAMILIES, POINT_FAMILY
from dpviz.privacy.receipt import Receipt
from dpviz.publishing.config import from_tables
from dpviz.release.count_tables import plan_area_files
from dpviz.release.manifest import describe_contents
from dpviz.release.tables import FORMATS, Member, plan_trip_files
from dpviz.view.help import PAGES, page_of, pages, section_key
from tests.mechanisms.derived import with_gaussian_keys

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "dpviz" / "docs"
README = (ROOT / "README.md").read_text("utf-8")
PAGE_TEXTS = {path.stem: path.read_text("utf-8") for path in sorted(DOCS.glob("*.md"))}
FILES = ["README.md", "dpviz/ARCHITECTURE.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
FILES += [f"dpviz/docs/{key}.md" for key in PAGE_TEXTS]


def test_every_mechanism_is_in_the_table_of_its_page_and_the_usual_ones_are_in_that_of_readme():
    """`python -m tests.mechanisms.derived` writes a missing row of the page."""
    families = FAMILIES.values()
    assert [kind.key for family in families for kind in family.own if f"| `{kind.key}` |" not in PAGE_TEXTS["mechanisms"]] == []
    assert [key for family in families for key in family.usual if f"| `{key}` |" not in README] == []
    for text in (README, PAGE_TEXTS["mechanisms"]):
        assert with_gaussian_keys(text) == text, "it names those that take rho"


def test_readme_is_short_and_lists_every_page():
    assert len(README.split()) <= 1350
    listed = re.findall(r"^\| \[(.*?)\]\(dpviz/docs/(\w+)\.md\)", README, re.MULTILINE)
    assert listed == [(page.title, key) for key, page in pages().items()]


def test_ci_runs_the_test_command_of_the_readme():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert [line.split(" -m ")[-1] for line in commands] == ["streamlit run app.py", "pytest"]
    run, check = ((ROOT / ".ci" / name).read_text("utf-8") for name in ("run", "check"))
    assert r"s/^\(python3 -m venv .*pytest\)$/\1/p" in run
    assert run.endswith("exec .ci/check\n")
    lines = check.splitlines()
    assert {"python -m pytest", "ruff check .", "ruff format --check .", "mypy"} <= set(lines)
    assert lines[-1] == 'python -m pytest -m "slow and not browser"', "CI ends with what the tests say"


@pytest.mark.parametrize("name", FILES)
def test_linked_files_exist(name):
    links = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", (ROOT / name).read_text("utf-8"))
    files = [link for link in links if "://" not in link and not link.startswith("learn?")]  # of the app: see tests/app/test_worksheet.py
    assert [link for link in files if not ((ROOT / name).parent / link).exists()] == []


def test_headings_of_a_page_differ_and_pages_link_to_sections_that_there_are():
    assert set(PAGE_TEXTS) == set(PAGES)
    sections = {key: [section.key for section in page.sections] for key, page in pages().items()}
    assert all(len(set(keys)) == len(keys) > 2 for keys in sections.values())
    links = [link for page in pages().values() for section in page.sections for link in section.links]
    assert links
    assert [link for link in links if link.section not in sections[link.page]] == []


def test_no_sign_of_a_page_means_more_to_streamlit_than_to_a_reader_of_markdown():
    """Outside of code: dollars would be formulas, colons with brackets colours or icons."""
    for name, text in {"README": README, **PAGE_TEXTS}.items():
        words = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        assert re.findall(r"\$|:\w+\[|:\w+:|~\S+~", words) == [], name


COMMAND_LINES = [
    line.partition("  #")[0].strip()
    for text in (README, *PAGE_TEXTS.values())
    for line in "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    if line.startswith("dpviz ")
]


def test_every_command_is_shown():
    assert {line.split()[1] for line in COMMAND_LINES} == set(COMMANDS)


@pytest.mark.parametrize("line", dict.fromkeys(COMMAND_LINES))
def test_a_command_that_is_shown_is_understood(line):
    words = shlex.split(line)[1:]
    assert parser().parse_args(words).command == words[0]


TEXTS = {"README": README, **{key: text for key, text in PAGE_TEXTS.items() if key != "changes"}}  # changes speak of what was, too
SPANS = {name: re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)) for name, text in TEXTS.items()}
BLOCKS = {name: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for name, text in TEXTS.items()}
VALUES = {"CONFIG": "a.toml", "FIGURE": "3", "N": "3", "COMMAND": "release"}  # for the words in capitals
METHODS = {
    "release": [dv.PointRelease, dv.AreaRelease, dv.TripRelease],
    "receipt": [Receipt],
    "page": [MapPage],
    "htf": [dpviz.papers.htf],
    "dataclasses": [dataclasses],
}
"""What the first word of a call may be, where it is a name of an example."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the files of which the pages speak, and a ledger."""
    monkeypatch.chdir(tmp_path)
    dv.Ledger.new(tmp_path / "ledger.sqlite")
    monkeypatch.setenv("DPVIZ_LEDGER", str(tmp_path / "ledger.sqlite"))
    rows = "".join(f"{-118.3 + k / 100},{34 + k / 200},r{k}\n" for k in range(20))
    Path("homes.csv").write_text(f"lon,lat,resident\n{rows}", "utf-8")
    Path("trips.csv").write_text("origin,destination\n06037,06059\n06037,06037\n", "utf-8")
    COUNTIES.to_file("counties.geojson")
    COUNTIES.to_file("land.geojson")
    return tmp_path


BOXES = [shapely.box(-118.7, 33.7, -118.2, 34.4), shapely.box(-118.2, 33.7, -117.8, 34.4)]
COUNTIES = geopandas.GeoDataFrame({"state": ["06", "06"], "county": ["06037", "06059"]}, geometry=BOXES, crs="EPSG:4326")
AREA = dv.Domain(bounds=(-118.7, 33.7, -117.8, 34.4), crs="EPSG:4326", order=6)
FRAME = pd.DataFrame({"lon": [-118.2], "lat": [34.1]})
KNOWN = {
    "area": AREA,
    "square": AREA,
    "frame": FRAME,
    "geodataframe": geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(FRAME.lon, FRAME.lat), crs="EPSG:4326"),
    "counties": COUNTIES,
    "regions": dv.Regions.from_table(COUNTIES, levels=["state", "county"]),
}


def calls_in(text):
    """The calls of names of dpviz in code or in a comment, as texts."""
    for start in re.finditer(r"(?<![\w.])(?:dv|dpviz|release|receipt|page|dataclasses)\.[\w.]+\(|(?<![\w.])[A-Z]\w+\(", text):
        ends = [place.end() for place in re.finditer(r"\)", text) if place.end() > start.end()]
        yield next((text[start.start() : end] for end in ends if parses(text[start.start() : end])), text[start.start() :])


def parses(code):
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True


def look_up(name):
    """What a dotted name may mean; AttributeError if there is no such thing."""
    first, *rest = name.split(".")
    if first == "dpviz":
        return [pkgutil.resolve_name(name)]
    if first == "dv":
        return [pkgutil.resolve_name(f"dpviz:{'.'.join(rest)}")]
    candidates = METHODS.get(first) or [dv]
    names = rest or [first]
    found = [operator.attrgetter(".".join(names))(each) for each in candidates if hasattr(each, names[0])]
    assert found, f"{name}: there is no such name"
    return found


def bind(code):
    """Bind the arguments of a call, and of the calls in them, to the signatures of what is called."""
    for call in [node for node in ast.walk(ast.parse(code, mode="eval")) if isinstance(node, ast.Call)]:
        functions = look_up(ast.unparse(call.func))
        assert any(takes(function, call) for function in functions), f"{code}: these arguments do not fit"


def takes(function, call):
    self = [None] if inspect.isfunction(function) and function.__qualname__ != function.__name__ else []
    try:
        inspect.signature(function).bind(*self, *call.args, **{keyword.arg: None for keyword in call.keywords})
    except TypeError:
        return False
    return True


def is_known(code):
    """Whether a call reads a file or a table of `place`, and all of its names are known."""
    names = {node.id for node in ast.walk(ast.parse(code, mode="eval")) if isinstance(node, ast.Name)} - {"dv"}
    return re.match(r"dv\.(read_|Regions\.from_table)", code) and "..." not in code and names <= KNOWN.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_code_on_a_page_runs_and_calls_in_its_sentences_and_comments_are_right(name, place):
    """Doctests run by themselves. Names must be there, arguments must fit, commands be understood, and what reads a file must read it."""
    comments = re.findall(r"  # (.*)", "".join(re.findall(r"```.*?```", TEXTS[name], re.DOTALL)))
    for code in [call for text in (*SPANS[name], *comments) for call in calls_in(text)]:
        bind(code)
        if is_known(code):
            eval(code, {"dv": dv, **KNOWN})  # noqa: S307  (our own page)
    for span in SPANS[name]:
        if re.fullmatch(r"(dv|dpviz)(\.\w+)+", span) and span not in {family.group for family in FAMILIES.values()}:
            look_up(span)
        if span.startswith("dpviz "):
            understand(span)
    for block in BLOCKS[name]:
        if ">>>" not in block:
            exec(compile(block, name, "exec"), {})  # noqa: S102  (our own page)


def understand(span):
    """Parse a command of a sentence; one word is the name of a command."""
    words = [VALUES.get(word, word) for word in shlex.split(span)[1:]]
    assert words[0] in COMMANDS
    if "--help" not in words and len(words) > 1:
        parser().parse_args(words)


@pytest.mark.parametrize("name", ["README", "start"])
def test_the_first_commands_lead_from_a_file_to_a_release(name, place, capsys):
    section = TEXTS[name].partition("## Your own file\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^dpviz .*", section, re.MULTILINE)
    assert [main(shlex.split(line, comments=True)[1:]) for line in lines] == [0] * len(lines)
    assert "Verified" in capsys.readouterr().out
    assert dv.read_release(place / "homes_release").receipt.unit == "person"


def test_the_configurations_that_are_shown_are_good_ones():
    whole, areas, *regions = map(tomllib.loads, re.findall(r"```toml\n(.*?)```", PAGE_TEXTS["publishing"], re.DOTALL))
    config = from_tables(whole)
    assert config.mechanism.build(POINT_FAMILY).height == 8
    assert config.dataset.cap() == dv.PureBudget(2)
    assert [from_tables({**areas, **part}, for_dry_run=True).family.name for part in ({}, *regions)] == ["areas"] * 4


def columns_in(path):
    if path.suffix == ".csv":
        return pd.read_csv(path, nrows=1).columns.tolist()
    if path.suffix == ".gpkg":
        layers = geopandas.list_layers(path)["name"]
        return list(dict.fromkeys(column for layer in layers for column in geopandas.read_file(path, layer=layer, rows=1).columns))
    return pq.read_schema(path).names if path.suffix == ".parquet" else geopandas.read_file(path).columns.tolist()


FLIGHTS, BOTH = dv.load_sample("us_flights"), dv.ApproxBudget(1, 1e-8)
PLANS = {
    "trips": (
        lambda: dv.FittedTree(false_discovery=0.05).release(FLIGHTS, BOTH, dv.Entropy.seeded(1)),
        plan_trip_files,
    ),
    "areas": (
        lambda: dv.RegionTree().release(dv.load_sample("us_residents"), dv.PureBudget(1), dv.Entropy.seeded(1)),
        plan_area_files,
    ),
}


@pytest.mark.parametrize("kind", PLANS)
def test_every_file_and_every_column_is_described(kind, tmp_path):
    """Each row of the table names files and their columns, in order."""
    text = PAGE_TEXTS["publishing"].partition(f"## The files of {kind}\n")[2].partition("\n## ")[0]
    cells = [[re.findall("`([^`]+)`", cell) for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    files = {name: row[2] for row in cells if len(row) == 3 for name in row[0]}
    described = {name for row in cells if len(row) == 2 for name in row[0]}
    make, plan_files = PLANS[kind]
    release = make()
    plan = [each for each in plan_files(release, FORMATS) if isinstance(each, Member)]
    for member in plan:
        member.write(tmp_path / member.name)
        assert columns_in(tmp_path / member.name) == files[re.sub(r"_\d_\w+", "_LEVEL", member.name)], member.name
    assert {re.sub(r"_\d_\w+", "_LEVEL", member.name) for member in plan} == files.keys()
    assert set(describe_contents(release).columns) == {column for columns in files.values() for column in columns}
    assert set(describe_contents(release).columns) <= described


def test_exit_codes_and_options_of_engines_are_explained():
    words = ("--engine dask", "--address", "--insecure-address", "dpviz[scale]", "dask scheduler", "dask worker", "DPVIZ_DASK_ADDRESS")
    assert [word for word in words if word not in PAGE_TEXTS["engines"]] == []
    assert re.search("0 done; 1 refused.*130 interrupted", PAGE_TEXTS["commands"], re.DOTALL)


def test_the_key_of_a_heading_is_that_of_its_link():
    page = page_of("page", "# Page\n\n## What's new, and `when`?\n\nText.\n")
    assert page.sections[1].key == section_key("What's new, and `when`?") == "whats-new-and-when"
