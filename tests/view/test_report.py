"""The report of a release: correct, safe, accessible, reproducible and small."""

import contextlib
import html
import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import RefusedError
from dpviz.mechanisms import FLOW_MECHANISMS, POINT_MECHANISMS, ExactKdtree, Identity, Kdtree, Quadtree, TopDown, UniformGrid
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
        self.text = re.sub(r"\s+", " ", " ".join(self.words))
        self.tags = [tag for tag, _ in self.elements]

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

    def all(self, tag, kind=None):
        """Attributes of the elements of a tag, or of those of one class."""
        return [attrs for name, attrs in self.elements if name == tag and kind in (None, attrs.get("class"))]


def reported(release, words=WORDS, **changes):
    return report_html(release, describe(release, words, created=WHEN, release_id="test-1") | changes)


def page_of(release, words=WORDS, **changes):
    return Page(reported(release, words, **changes))


def placed_trips(shapes="polygons", mechanism="top_down", **options):
    flows = random_trips(grid(shapes=shapes, **options))
    return FLOW_MECHANISMS[mechanism]().release(flows, ApproxBudget(2, "1e-6"), Entropy.system())


def pure(mechanism, points, epsilon=1):
    return mechanism.release(points, PureBudget(epsilon), Entropy.system())


CASES = {
    **{key: lambda row=row: pure(row(), points_of(200)) for key, row in POINT_MECHANISMS.items()},
    **{key: lambda key=key: placed_trips(mechanism=key) for key in FLOW_MECHANISMS},
    "points on a plane": lambda: pure(UniformGrid(side=8), points_of(300, crs=None)),
    "points in metres": lambda: pure(Quadtree(height=3), metres()),
    "no records": lambda: pure(Quadtree(height=3), points_of(0)),
    "trips between points": lambda: placed_trips(shapes="points"),
    "trips without places": lambda: trip_release(),
}


def metres():
    rng = np.random.default_rng(3)
    domain = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=8)
    return PointCounts.from_xy(rng.uniform(3e5, 3.4e5, 400), rng.uniform(5e6, 5.05e6, 400), domain=domain)


@pytest.fixture(params=CASES, scope="module")
def case(request):
    release = CASES[request.param]()
    html = reported(release)
    return release, html, Page(html)


FETCHING = {"script", "img", "iframe", "object", "embed", "link", "base", "form", "image", "use", "foreignobject", "a"}


def test_a_page_is_complete_the_same_each_time_and_loads_nothing(case):
    release, html, page = case
    assert reported(release) == html
    html = html.decode()
    assert html.startswith("<!DOCTYPE html>")
    assert not set(page.tags) & FETCHING
    assert not re.search(r"@import|https?:|//[a-z]|javascript:|data:", html, re.IGNORECASE)
    assert {address[0] for address in re.findall(r"url\((.)", html)} <= {"#"}
    for _, attrs in page.elements:
        assert not {name for name in attrs if name in ("src", "href", "xlink:href", "srcset", "action") or name.startswith("on")}
    policy = next(attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_a_page_names_its_mechanism_says_what_is_protected_and_has_no_broken_numbers(case):
    release, _, page = case
    for told in (release.mechanism, "What is protected, and what is not", release.approximate or ""):
        assert told in page.text
    for note in (*release.receipt.notes, *release.receipt.unprotected):
        assert note[1:] in page.text
    assert not re.search(r"\b(nan|inf|None|True|False|Undefined)\b|\de[+-]0|\de\+", page.text)
    assert not any(re.search("nan|inf", attrs.get(name) or "") for _, attrs in page.elements for name in ("d", "x", "cx"))


def test_a_page_has_an_order_that_screen_readers_can_follow(case):
    release, _, page = case
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    pictures = page.all("svg")
    assert len(pictures) >= (3 if isinstance(release, FlowRelease) else 5)
    for attrs in pictures:
        assert attrs["role"] == "img"
        assert set(attrs["aria-labelledby"].split()) <= set(ids)
    assert page.tags.count("table") == page.tags.count("caption")
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    assert page.all("html") == [{"lang": "en"}]


def test_the_curators_texts_are_shown():
    page = page_of(point_release())
    for text in (WORDS.name, WORDS.curator, WORDS.description, WORDS.region, WORDS.intended_use, "2026-11-21 12:30 UTC", "Release test-1"):
        assert text in page.text
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


def test_structure_and_exact_amounts_are_drawn_apart_and_early_leaves_are_not_added():
    release = point_release()
    page = page_of(release)
    for step in release.receipt.steps:
        assert str(step.amount) in page.text.replace("/ ", "/")
    described = page.text[page.text.index("Spent: ") :]
    for level in range(1, release.height + 1):
        assert f"level {level}" in described
    bars = [float(attrs["width"]) for attrs in page.all("rect", "counts")]
    shares = [float(step.amount) for step in release.receipt.steps]
    assert np.allclose(bars, 200 * np.array(shares) / max(shares), atol=0.01)
    release = pure(POINT_MECHANISMS["kdtree"](height=3), points_of(300))
    page = page_of(release)
    assert page.all("rect", "structure")
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


def test_the_first_paragraph_claims_no_more_than_is_protected_and_delta_and_rho_are_explained_in_words():
    """If one record is replaced by another, the number of records is public."""
    assert "hides whether any single record is in the data" in page_of(point_release()).text
    trips = flows_on(regions_with_shapes())
    text = page_of(TopDown().release(trips, ApproxBudget(1, "1e-8"), Entropy.system())).text
    assert "it hides what any single trip was." in text
    assert "is in the data" not in text
    assert "slack of δ = 1e-8, about 1 in 100,000,000" in text
    assert "tight conversion" in text
    text = page_of(TopDown().release(trips, ZcdpBudget("0.1"), Entropy.system())).text
    assert "zero-concentrated differential privacy with ρ = 0.1" in text
    assert "published exactly : taken as public" in text


def test_bounds_per_person_are_shown_and_records_of_people_are_records():
    """Two users with a record in each of 200 cells are no 400 people."""
    x, y = np.random.default_rng(1).uniform([[-9], [41]], [[5], [55]], (2, 400))
    for people, bound in ((200, 2), (2, 1)):
        person = np.repeat(np.arange(people), 400 // people)
        points = PointCounts.from_xy(x, y, domain=points_of(0).domain, person=person, contributions=bound)
        text = page_of(pure(Quadtree(height=2), points)).text
        assert "Protected each person" in text
        assert "records per km²" in text
        assert not re.search(r"\d people|people per", text)
        assert (f"At most {bound} records of each person were counted" in text) == (bound > 1)
        assert (f"each person, with at most {bound} records" in text) == (bound > 1)


def test_accumulating_errors_and_ids_with_apostrophes_are_explained_only_where_they_occur():
    flat, tree = page_of(pure(Identity(order=4), points_of(100))).text, page_of(point_release()).text
    assert "Adding up small numbers adds up their noise" in flat
    assert "Sums stay accurate" not in flat
    assert "Sums stay accurate" in tree
    assert "Ids in CSV files" not in tree
    assert "Ids in CSV files" in page_of(trip_release()).text


def test_numbers_below_zero_are_explained_where_there_are_any():
    release = pure(Identity(order=4), points_of(0), "0.1")
    html, cut = reported(release), replace(release, count=np.maximum(release.count, 0.0))
    assert ".n1{" in html.decode()
    for told in ("Numbers below zero", "below zero, by noise", "This level is mostly noise, too."):
        assert told in Page(html).text
    assert "Numbers below zero" not in page_of(cut).text


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
    arcs = page.all("path", "arc")
    assert 0 < len(arcs) <= 200
    widths = [int(attrs["stroke-width"]) for attrs in arcs]
    assert widths == sorted(widths)
    gradients = {attrs["id"]: attrs for attrs in page.all("lineargradient")}
    for attrs in arcs:
        ends = gradients[attrs["stroke"].removeprefix("url(#").removesuffix(")")]
        begin, end = re.match(r"M(-?\d+ -?\d+)Q.* (-?\d+ -?\d+)$", attrs["d"]).groups()
        assert f"{ends['x1']} {ends['y1']}" == begin
        assert f"{ends['x2']} {ends['y2']}" == end
    assert len(page.all("path", "region")) in (16, 64)


def test_regions_without_geometry_get_a_table_and_no_map():
    page = page_of(trip_release())
    assert not page.all("svg", "map")
    assert "The released pairs with the most trips" in page.text
    assert page_of(placed_trips()).all("svg", "map")


@pytest.mark.parametrize("kind", ["points", "trips"])
def test_hostile_texts_stay_texts(kind):
    words = replace(WORDS, **dict.fromkeys(("name", "curator", "description", "region", "intended_use"), HOSTILE))
    release = point_release()
    if kind == "trips":
        regions = regions_with_shapes(names=[f"{HOSTILE}{place}" for place in range(4)])
        release = TopDown().release(flows_on(regions), ApproxBudget(5, "1e-6"), Entropy.system())
    page = page_of(release, words)
    assert not set(page.tags) & {"script", "img"}
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert not set(page.text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    assert page.text.count("onerror=") >= (5 if kind == "points" else 9)
    assert "{{ 7*7 }}{% raw %}" in page.text
    assert page.tags.count("style") == page.tags.count("title") - page.tags[page.tags.index("body") :].count("title") == 1


def test_unprintable_characters_are_removed():
    manifest = describe(point_release(), WORDS)
    for text in ("\x00\x07name\x9f", "half \ud800", "\ufeffname\uffff"):
        manifest["data_product"]["name"] = text
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\uffff]", report_html(point_release(), manifest).decode())


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
    with pytest.raises(RefusedError, match="simulation"):
        report_html(Quadtree(height=2).release(points_of(50), PureBudget(1), Entropy.seeded(1)), manifest)
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        report_html(pure(ExactKdtree(height=2), points_of(50)), manifest)


FORMATS = [("geoparquet", "geojson", "csv"), ("csv",), ("geojson",)]
MIDDLE = [-6.0, 44.0, 2.0, 52.0]


def printed(release, formats, folder, monkeypatch) -> float:
    """What the code in the report of a release prints in the folder to which the release is written."""
    manifest = describe(release, WORDS)
    report = report_html(release, manifest, formats=formats)
    write_release(release, folder, manifest, formats=formats, files={"report.html": report})
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", (folder / "report.html").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as told:
        exec(compile(html.unescape(code), "report", "exec"), {})  # noqa: S102
    return float(told.getvalue())


@pytest.mark.parametrize(("mechanism", "formats"), [(Kdtree(height=2), FORMATS[0]), (Quadtree(height=3), FORMATS[1])])
def test_the_code_in_a_report_adds_up_a_box_as_the_release_does(mechanism, formats, tmp_path, monkeypatch):
    release = pure(mechanism, points_of(400))
    assert printed(release, formats, tmp_path / "out", monkeypatch) == pytest.approx(release.answer([MIDDLE])[0], rel=1e-6)


@pytest.mark.parametrize("formats", FORMATS[:2], ids="+".join)
def test_it_adds_up_the_trips_from_a_region_whatever_its_id(formats, tmp_path, monkeypatch):
    regions = regions_with_shapes()
    ids = ["=1+1'\"\\", *regions.ids[1][1:]]
    regions.ids[1][:] = ids
    release = TopDown().release(flows_on(regions), ApproxBudget(5, "1e-6"), Entropy.system())
    assert printed(release, formats, tmp_path / "out", monkeypatch) == release.answer([ids[0]], ["all"], levels=(2, 0))[0] > 0
