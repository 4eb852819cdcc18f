"""The report of a release: correct, safe, accessible, reproducible and small."""

import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import RefusedError
from dpviz.mechanisms import FLOW_MECHANISMS, POINT_MECHANISMS, ExactKdtree, HilbertTree, Identity, Quadtree, TopDown, UniformGrid
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_manifest, write_release
from dpviz.release.flow_release import FlowRelease
from dpviz.release.manifest import describe
from dpviz.release.simultaneous_intervals import count_of_numbers, pair_intervals
from dpviz.release.verdict import verdict
from dpviz.samples.points import load_sample
from dpviz.space.domain import Domain
from dpviz.view.report import report_html
from tests.release_cases import WORDS, flows_on, point_release, points_of, regions_with_shapes, trip_release
from tests.view.trips_cases import grid, random_trips

MOST_BYTES = 3_000_000
WHEN = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
HOSTILE = '</script></title></style><img src=x onerror="alert(1)">\'"`{{ 7*7 }}{% raw %} & \u202egnp.exe\u2066'
VOID = {"meta", "wbr"}


class Page(HTMLParser):
    """Parses elements, attributes and visible text of a page; raises on tags that do not match."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(html.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def tags(self):
        return [tag for tag, _ in self.elements]

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def reported(release, words=WORDS, **changes):
    return report_html(release, describe(release, words, created=WHEN, release_id="test-1") | changes)


def page_of(release, words=WORDS, **changes):
    return Page(reported(release, words, **changes))


def placed_trips(shapes="polygons", mechanism="top_down", **options):
    flows = random_trips(grid(shapes=shapes, **options))
    return FLOW_MECHANISMS[mechanism]().release(flows, ApproxBudget(2, "1e-6"), Entropy.system())


CASES = {
    "points": lambda: point_release(),
    "points on a plane": lambda: UniformGrid(side=8).release(points_of(300, crs=None), PureBudget(1), Entropy.system()),
    "points in metres": lambda: Quadtree(height=3).release(metres(), PureBudget(1), Entropy.system()),
    "overlapping boxes": lambda: HilbertTree(height=3).release(points_of(300), PureBudget(1), Entropy.system()),
    "early leaves": lambda: POINT_MECHANISMS["htf"]().release(points_of(300), PureBudget(1), Entropy.system()),
    "no records": lambda: Quadtree(height=3).release(points_of(0), PureBudget(1), Entropy.system()),
    "trips": lambda: placed_trips(),
    "trips between points": lambda: placed_trips(shapes="points"),
    "trips without places": lambda: trip_release(),
    "flat trips": lambda: placed_trips(mechanism="flat_gaussian"),
    "thresholded trips": lambda: placed_trips(mechanism="stability_histogram"),
}


def metres():
    rng = np.random.default_rng(3)
    domain = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=8)
    return PointCounts.from_xy(rng.uniform(3e5, 3.4e5, 400), rng.uniform(5e6, 5.05e6, 400), domain=domain)


@pytest.fixture(params=CASES, scope="module")
def case(request):
    release = CASES[request.param]()
    return release, page_of(release)


def test_a_page_is_complete_and_loads_nothing(case):
    release, page = case
    html = reported(release).decode()
    assert html.startswith("<!DOCTYPE html>")
    assert not set(page.tags()) & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "image",
        "use",
        "foreignobject",
        "a",
    }
    assert not re.search(r"@import|https?:|//[a-z]|javascript:|data:", html, re.IGNORECASE)
    assert {address[0] for address in re.findall(r"url\((.)", html)} <= {"#"}
    for _, attrs in page.elements:
        assert not {name for name in attrs if name in ("src", "href", "xlink:href", "srcset", "action") or name.startswith("on")}
    policy = next(attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_a_page_has_an_order_that_screen_readers_can_follow(case):
    _, page = case
    levels = [int(tag[1]) for tag in page.tags() if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    pictures = page.all("svg")
    assert len(pictures) >= 3
    for attrs in pictures:
        assert attrs["role"] == "img"
        assert set(attrs["aria-labelledby"].split()) <= set(ids)
    assert page.tags().count("table") == page.tags().count("caption")
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    assert page.all("html") == [{"lang": "en"}]


def test_a_page_is_the_same_for_the_same_release(case):
    release, _ = case
    assert reported(release) == reported(release)


def test_numbers_are_never_broken(case):
    _, page = case
    assert not re.search(r"\b(nan|inf|None|True|False|Undefined)\b|\de[+-]0|\de\+", page.text)
    assert not any(
        re.search("nan|inf", value or "") for _, attrs in page.elements for name, value in attrs.items() if name in ("d", "x", "cx")
    )


def test_the_curators_texts_are_shown():
    page = page_of(point_release())
    for text in (WORDS.name, WORDS.curator, WORDS.description, WORDS.region, WORDS.intended_use):
        assert text in page.text
    assert "2026-11-21 12:30 UTC" in page.text
    assert "Release test-1" in page.text
    assert "the curator's ledger counted 3 draws from these data" in page.text
    assert "epsilon 1.5 has been spent of at most epsilon 2" in page.text
    assert "The true numbers were looked at" in page.text
    careful = page_of(point_release(), replace(WORDS, draws=1, truth_seen=False, dataset_spent=None, region=""))
    assert "the only draw from its data that the curator's ledger counted" in careful.text
    assert "According to the ledger, the true numbers were not looked at" in careful.text
    assert "Region" not in careful.text
    assert "has been spent of" not in careful.text


def test_the_leading_example_is_the_partition_at_the_centre_of_the_domain():
    release = point_release()
    page = page_of(release)
    found = re.search(
        r"For example, chosen by its position, not by its number: partition ([\d,]+) \([^)]*\) was released with (−?[\d,]+) records .*?"
        r" between (−?[\d,]+) and (−?[\d,]+) \.",
        page.text,
    )
    node, count, low, high = (int(part.replace(",", "").replace("−", "-")) for part in found.groups())
    middle = np.array([release.domain.side // 2], np.int32)
    lowest, highest = release.interval(np.array([node]))
    assert (count, low, high) == (round(release.count[node]), lowest[0], highest[0])
    assert node == release.tree.leaf_of(middle, middle)[0]
    assert "fullest" not in page.text


def test_a_report_opens_with_the_verdict():
    for release in (point_release(), placed_trips()):
        page = page_of(release)
        assert page.text.index(verdict(release).headline) < page.text.index("How to read the numbers")
        assert verdict(release).rule in page.text


def test_the_largest_pairs_have_intervals_that_hold_for_all_at_once():
    release = placed_trips()
    page = page_of(release)
    at = release.stages[-1]
    low, high = pair_intervals(release, release.tree.height)
    first = np.lexsort((at.destination, at.origin, -at.count))[0]
    row = page.text[page.text.index("All at once, 95 % from") :]
    shown = re.search(r"1 (?:within |.*? to )?.*? ([\d,]+) ([\d,]+) ([\d,]+) 2 ", row)
    assert [int(part.replace(",", "")) for part in shown.groups()] == [at.count[first], low[first], high[first]]
    assert f"all {count_of_numbers(release):,} numbers" in page.text


def test_exact_amounts_add_up_in_the_table_and_are_in_the_pyramid():
    release = point_release()
    page = page_of(release)
    for step in release.receipt.steps:
        assert str(step.amount) in page.text.replace("/ ", "/")
    described = page.text[page.text.index("Spent: ") :]
    for level in range(1, release.height + 1):
        assert f"level {level}" in described
    bars = [float(attrs["width"]) for attrs in page.all("rect") if attrs.get("class") == "counts"]
    shares = [float(step.amount) for step in release.receipt.steps]
    assert np.allclose(bars, 200 * np.array(shares) / max(shares), atol=0.01)


def test_structure_is_drawn_apart_and_early_leaves_are_not_added():
    release = POINT_MECHANISMS["kdtree"](height=3).release(points_of(300), PureBudget(1), Entropy.system())
    page = page_of(release)
    assert [attrs for attrs in page.all("rect") if attrs.get("class") == "structure"]
    assert "spent on choosing the structure" in page.text
    early = any(step.replaces_later for step in release.receipt.steps)
    assert ("† At leaves above the finest level" in page.text) == early
    assert page.text.count("†") == sum(step.replaces_later for step in release.receipt.steps) + early


@pytest.mark.parametrize(("epsilon", "factor", "most"), [("0.5", "1.65", "62.3 %"), ("1", "2.72", "73.2 %"), ("10", "22,027", "100 %")])
def test_odds_follow_from_epsilon(epsilon, factor, most):
    release = UniformGrid(side=4).release(points_of(50), PureBudget(epsilon), Entropy.system())
    text = page_of(release).text
    assert f"at most {factor} (e ε , with ε = {float(epsilon):.4g})" in text
    assert re.search(rf"50 % [\d.]+ % {re.escape(most)}", text)
    assert "slack" not in text


def test_the_first_paragraph_claims_no_more_than_is_protected():
    """If one record is replaced by another, the number of records is public."""
    assert "hides whether any single record is in the data" in page_of(point_release()).text
    trips = page_of(TopDown().release(flows_on(regions_with_shapes()), ApproxBudget(1, "1e-8"), Entropy.system())).text
    assert "it hides what any single trip was." in trips
    assert "is in the data" not in trips


def test_ids_with_an_apostrophe_are_explained_where_there_are_ids():
    assert "Ids in CSV files" in page_of(trip_release()).text
    assert "Ids in CSV files" not in page_of(point_release()).text


def test_delta_and_rho_are_explained_in_words():
    trips = flows_on(regions_with_shapes())
    text = page_of(TopDown().release(trips, ApproxBudget(1, "1e-8"), Entropy.system())).text
    assert "slack of δ = 1e-8, about 1 in 100,000,000" in text
    assert "tight conversion" in text
    text = page_of(TopDown().release(trips, ZcdpBudget("0.1"), Entropy.system())).text
    assert "zero-concentrated differential privacy with ρ = 0.1" in text
    assert "published exactly : taken as public" in text


def test_bounds_per_person_are_shown():
    rng = np.random.default_rng(1)
    x, y = rng.uniform([[-9], [41]], [[5], [55]], (2, 600))
    domain = Domain(bounds=(-10.0, 40.0, 6.0, 56.0), crs="EPSG:4326", order=5)
    points = PointCounts.from_xy(x, y, domain=domain, person=np.repeat(np.arange(200), 3), contributions=2)
    text = page_of(Quadtree(height=2).release(points, PureBudget(1), Entropy.system())).text
    assert "At most 2 records of each person were counted" in text
    assert "each person, with at most 2 records" in text


def test_records_of_people_are_records():
    """Two users with a record in each of 200 cells are no 400 people."""
    x, y = np.random.default_rng(1).uniform([[-9], [41]], [[5], [55]], (2, 400))
    points = PointCounts.from_xy(x, y, domain=points_of(0).domain, person=np.repeat([0, 1], 200), contributions=1)
    text = page_of(Quadtree(height=2).release(points, PureBudget(1), Entropy.system())).text
    assert "Protected each person" in text
    assert "records per km²" in text
    assert not re.search(r"\d people|people per", text)


def test_accumulating_errors_are_stated_only_where_they_occur():
    flat = Identity(order=4).release(points_of(100), PureBudget(1), Entropy.system())
    assert "Adding up small numbers adds up their noise" in page_of(flat).text
    assert "Sums stay accurate" not in page_of(flat).text
    assert "Sums stay accurate" in page_of(point_release()).text


def test_numbers_below_zero_are_explained_where_there_are_any():
    release = Identity(order=4).release(points_of(0), PureBudget("0.1"), Entropy.system())
    assert "Numbers below zero" in page_of(release).text
    cut = replace(release, count=np.maximum(release.count, 0.0))
    assert "Numbers below zero" not in page_of(cut).text
    assert ".n1{" in reported(release).decode()
    assert "below zero, by noise" in page_of(release).text
    assert "This level is mostly noise, too." in page_of(release).text


def test_partitions_are_shapes_with_their_released_numbers():
    release = point_release()
    page = page_of(release)
    shapes = [attrs for attrs in page.all("path") if re.fullmatch(r"[pn]\d+", attrs.get("class", ""))]
    assert len(shapes) == len(release.nodes()) == 64
    low, high = release.interval(release.nodes()[:1])
    first = f"{round(release.count[release.nodes()[0]]) + 0:,} records, 95 % between {low[0]:,.0f} and {high[0]:,.0f}"
    assert first.replace("-", "−") in page.text


def test_a_fine_release_is_drawn_coarser_and_says_so():
    points = load_sample("la_residents")
    release = Quadtree(height=8).release(points, PureBudget("0.5"), Entropy.system())
    html = reported(release)
    assert len(html) < MOST_BYTES
    page = Page(html)
    assert "4,096 partitions (level 6). The release has finer levels, down to 65,536 partitions" in page.text
    assert page.text.count("95 % between") == 4096


def test_arcs_are_the_strongest_pairs_and_point_from_light_to_strong():
    release = placed_trips(columns=8, rows=8)
    page = page_of(release)
    arcs = [attrs for attrs in page.all("path") if attrs.get("class") == "arc"]
    assert 0 < len(arcs) <= 200
    widths = [int(attrs["stroke-width"]) for attrs in arcs]
    assert widths == sorted(widths)
    gradients = {attrs["id"]: attrs for attrs in page.all("lineargradient")}
    for attrs in arcs:
        ends = gradients[attrs["stroke"].removeprefix("url(#").removesuffix(")")]
        begin, end = re.match(r"M(-?\d+ -?\d+)Q.* (-?\d+ -?\d+)$", attrs["d"]).groups()
        assert f"{ends['x1']} {ends['y1']}" == begin
        assert f"{ends['x2']} {ends['y2']}" == end
    assert len([attrs for attrs in page.all("path") if attrs.get("class") == "region"]) in (16, 64)


def test_regions_without_geometry_get_a_table_and_no_map():
    page = page_of(trip_release())
    assert "map" not in [attrs.get("class") for attrs in page.all("svg")]
    assert "The released pairs with the most trips" in page.text
    assert "map" in [attrs.get("class") for attrs in page_of(placed_trips()).all("svg")]


@pytest.mark.parametrize("kind", ["points", "trips"])
def test_hostile_texts_stay_texts(kind):
    words = replace(WORDS, **dict.fromkeys(("name", "curator", "description", "region", "intended_use"), HOSTILE))
    release = point_release()
    if kind == "trips":
        regions = regions_with_shapes(names=[f"{HOSTILE}{place}" for place in range(4)])
        release = TopDown().release(flows_on(regions), ApproxBudget(5, "1e-6"), Entropy.system())
    page = page_of(release, words)
    assert not set(page.tags()) & {"script", "img"}
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert not set(page.text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    assert page.text.count("onerror=") >= (5 if kind == "points" else 9)
    assert "{{ 7*7 }}{% raw %}" in page.text
    assert page.tags().count("style") == page.tags().count("title") - len(svg_titles(page)) == 1


def svg_titles(page):
    return [tag for tag in page.tags()[page.tags().index("body") :] if tag == "title"]


@pytest.mark.parametrize("text", ["\x00\x07name\x9f", "half \ud800", "\ufeffname\uffff"])
def test_unprintable_characters_are_removed(text):
    manifest = describe(point_release(), WORDS)
    manifest["data_product"]["name"] = text
    html = report_html(point_release(), manifest).decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\uffff]", html)


def test_files_are_listed_with_their_hashes_once_they_are_known(tmp_path):
    release = point_release()
    before = page_of(release)
    assert "listed in its manifest.json" in before.text
    manifest = read_manifest(write_release(release, tmp_path / "out", describe(release, WORDS)))
    after = Page(report_html(release, manifest))
    assert manifest["files"]
    for file in manifest["files"]:
        assert file["name"] in after.text
        assert file["sha256"] in after.text


def test_simulations_and_references_get_no_report():
    manifest = describe(point_release(), WORDS)
    seeded = Quadtree(height=2).release(points_of(50), PureBudget(1), Entropy.seeded(1))
    with pytest.raises(RefusedError, match="simulation"):
        report_html(seeded, manifest)
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        report_html(ExactKdtree(height=2).release(points_of(50), PureBudget(1), Entropy.system()), manifest)


@pytest.mark.parametrize("key", [*POINT_MECHANISMS, *FLOW_MECHANISMS])
def test_every_mechanism_has_a_report(key):
    release = released_by(key)
    page = page_of(release)
    assert release.mechanism in page.text
    assert "What is protected, and what is not" in page.text
    if release.approximate:
        assert release.approximate in page.text
    for note in (*release.receipt.notes, *release.receipt.unprotected):
        assert note[1:] in page.text
    assert len(page.all("svg")) >= (5 if not isinstance(release, FlowRelease) else 3)


def released_by(key):
    if key in FLOW_MECHANISMS:
        return placed_trips(mechanism=key)
    return POINT_MECHANISMS[key]().release(points_of(200), PureBudget(1), Entropy.system())


def test_a_report_does_not_import_the_app():
    source = """
import sys
for name in ("pydeck", "altair", "PIL", "streamlit"):
    sys.modules[name] = None
import dpviz.view.report
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
