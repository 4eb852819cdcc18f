"""The report of a release: correct, safe, accessible, reproducible and small."""

import contextlib
import html
import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise, product

import numpy as np
import pytest

from dpviz.errors import RefusedError
from dpviz.mechanisms import (
    MECHANISMS,
    CrossTree,
    ExactKdtree,
    FittedTree,
    FlatAreas,
    Identity,
    Kdtree,
    Quadtree,
    RegionTree,
    StabilityHistogram,
    TopDown,
    UniformGrid,
)
from dpviz.privacy.budget import ApproxBudget, PureBudget, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import read_manifest, write_release
from dpviz.release.manifest import describe
from dpviz.release.point_release import PointRelease
from dpviz.release.verdict import verdict
from dpviz.samples.points import load_point_sample
from dpviz.view.report import report_html
from tests.area_cases import records_of
from tests.cross_cases import cross_records, values_of_people
from tests.release_cases import (
    WORDS,
    area_release,
    areas_on,
    hidden_release,
    point_release,
    points_of,
    regions_with_shapes,
    trip_counts_on,
    trip_release,
)
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
    trips = random_trips(grid(shapes=shapes, **options))
    return MECHANISMS.of("trips")[mechanism]().release(trips, ApproxBudget(2, "1e-6"), Entropy.system())


def pure(mechanism, points, epsilon=1):
    return mechanism.release(points, PureBudget(epsilon), Entropy.system())


CASES = {
    **{key: lambda row=row: pure(row(), points_of(200)) for key, row in MECHANISMS.of("points").items()},
    **{key: lambda key=key: placed_trips(mechanism=key) for key in MECHANISMS.of("trips")},
    "points on a plane": lambda: pure(UniformGrid(side=8), points_of(300, crs=None)),
    "points in metres": lambda: pure(Quadtree(height=3), points_of(300, crs="EPSG:3857")),
    "no records": lambda: pure(Quadtree(height=3), points_of(0)),
    "trips between points": lambda: placed_trips(shapes="points"),
    "trips without places": lambda: trip_release(),
    **{f"areas, {key}": lambda row=row: pure(row(), areas_on(regions_with_shapes())) for key, row in MECHANISMS.of("areas").items()},
    "areas, hidden": lambda: hidden_release(),
    "areas, non-negative": lambda: pure(RegionTree(nonnegative=True), areas_on(regions_with_shapes()), "1/20"),
    "areas by hour": lambda: pure(CrossTree(), cross_records()),
    "areas, means": lambda: pure(CrossTree(), values_of_people()),
    "areas without places": lambda: pure(FlatAreas(), records_of(0)),
}


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
    for text in (release.mechanism, "What is protected, and what is not", release.approximate or ""):
        assert text in page.text
    for note in (*release.receipt.notes, *release.receipt.unprotected):
        assert note[1:] in page.text
    assert not re.search(r"\b(nan|inf|None|True|False|Undefined)\b|\de[+-]0|\de\+", page.text.replace("keep_default_na=False", ""))
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
    assert len(pictures) >= (5 if isinstance(release, PointRelease) else 3)
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
    assert not re.search("Region|has been spent of", careful.text)
    unknown = page_of(point_release(), replace(WORDS, truth_seen="not recorded"))
    assert "Whether the true numbers were looked at while settings were chosen is not recorded." in unknown.text
    assert "The true numbers" not in unknown.text


def signed(value):
    return f"{value:,.0f}".replace("-", "−")


def test_the_leading_example_is_the_partition_at_the_centre_of_the_domain():
    release = point_release()
    middle = np.array([release.domain.side // 2], np.int32)
    nodes = release.tree.leaf_of(middle, middle)
    low, high = (signed(end[0]) for end in release.node_interval(nodes))
    count = signed(round(release.count[nodes[0]]))
    numbers = rf"partition {nodes[0]:,} \([^)]*\) was released with {count} records .*? between {low} and {high} \."
    assert re.search("For example, chosen by its position, not by its number: " + numbers, page_of(release).text)


def test_a_number_without_an_upper_end_is_at_least_its_lower_one():
    release = StabilityHistogram().release(random_trips(grid()), ApproxBudget(1, "1e-6"), Entropy.system())
    text = page_of(release).text
    assert re.search(r"the number before the noise is at least [\d,]+ ; how large it may be is not known\.", text)
    assert "and unknown" not in text


def test_a_report_opens_with_the_verdict_and_of_trips_the_intervals_of_the_largest_pairs_hold_for_all_at_once():
    trips = placed_trips()
    for release in (point_release(), trips):
        text = page_of(release).text
        assert text.index(verdict(release).headline) < text.index("How to read the numbers")
        assert verdict(release).rule in text
    assert f"all {trips.numbers:,} numbers" in text
    low, high = (ends.max() for ends in trips.stage_interval(trips.tree.height, joint=True))
    assert f"{trips.stages[-1].count.max():,} {low:,.0f} {high:,.0f} 2 " in text[text.index("All at once, 95 % from") :]


def test_structure_and_exact_amounts_are_drawn_apart_and_early_leaves_are_not_added():
    release = point_release()
    page = page_of(release)
    described = page.text[page.text.index("Spent: ") :].replace("/ ", "/")
    assert all(f"level {level}" in described for level in range(1, release.height + 1))
    assert all(str(step.amount) in page.text.replace("/ ", "/") for step in release.receipt.steps)
    shares = np.array([float(step.amount) for step in release.receipt.steps])
    np.testing.assert_allclose([float(attrs["width"]) for attrs in page.all("rect", "counts")], 200 * shares / max(shares), atol=0.01)
    release = pure(Kdtree(height=3), points_of(300))
    page = page_of(release)
    assert page.all("rect", "structure")
    assert "spent on choosing the structure" in page.text
    early = sum(step.replaces_later for step in release.receipt.steps)
    assert ("† At leaves above the finest level" in page.text) == (early > 0)
    assert page.text.count("†") == early + (early > 0)


def test_the_first_paragraph_claims_no_more_than_is_protected_and_delta_and_rho_are_explained_in_words():
    """If one record is replaced by another, the number of records is public."""
    text = page_of(point_release()).text
    assert "hides whether any single record is in the data" in text
    assert "at most 2.72 (e ε , with ε = 1)" in text
    assert re.search(r"50 % [\d.]+ % 73.2 %", text)
    assert "slack" not in text
    trips = trip_counts_on(regions_with_shapes())
    one, other = (
        page_of(TopDown().release(trips, budget, Entropy.system())).text for budget in (ApproxBudget(1, "1e-8"), ZcdpBudget("0.1"))
    )
    assert "it hides what any single trip was." in one
    assert "is in the data" not in one
    assert "slack of δ = 1e-8, about 1 in 100,000,000" in one
    assert "tight conversion" in one
    assert "zero-concentrated differential privacy with ρ = 0.1" in other
    assert "published exactly : taken as public" in other


def test_bounds_per_person_are_shown_and_records_of_people_are_records():
    for bound in (2, 1):
        points = replace(points_of(400), unit="person", contributions=bound)
        text = page_of(pure(Quadtree(height=2), points)).text
        assert "Protected each person" in text
        assert "records per km²" in text
        assert not re.search(r"\d people|people per", text)
        assert (f"At most {bound} records of each person were counted" in text) == (bound > 1)
        assert (f"each person, with at most {bound} records" in text) == (bound > 1)


def test_numbers_below_zero_errors_of_sums_and_ids_with_apostrophes_are_explained_only_where_they_occur():
    release = pure(Identity(order=4), points_of(0), "0.1")
    positive = replace(release, count=np.maximum(release.count, 0.0))
    flat, cut, tree, trips = (page_of(each).text for each in (release, positive, point_release(), trip_release()))
    for text in (
        "Numbers below zero",
        "below zero, by noise",
        "This level is mostly noise, too.",
        "Adding up small numbers adds up their noise",
    ):
        assert text in flat
    assert "Numbers below zero" not in cut
    assert ("Sums stay accurate" in flat, "Sums stay accurate" in tree) == (False, True)
    assert ("Ids in CSV files" in tree, "Ids in CSV files" in trips) == (False, True)


def test_partitions_are_shapes_with_their_released_numbers():
    release = point_release()
    page, nodes = page_of(release), release.nodes()
    assert page.text.count(", for this one alone)") == len(nodes) == 64
    low, high = (signed(end[0]) for end in release.node_interval(nodes[:1]))
    assert f"{signed(round(release.count[nodes[0]]))} records (95 %: {low} to {high}, for this one alone)" in page.text


def test_a_release_without_negative_numbers_says_what_that_biases_and_marks_numbers_outside_their_intervals():
    release = pure(Quadtree(height=3, negative="spread"), points_of(400))
    middle = release.tree.leaf_of(*np.full((2, 1), release.domain.side // 2, np.int32))
    far = np.where(
        np.arange(len(release.tree)) == middle, release.node_interval(middle)[1] + 5, release.node_interval(np.arange(len(release.tree)))[0]
    )
    text, before = page_of(replace(release, count=far)).text, page_of(point_release()).text
    for phrase in ("No number is below zero.", "nearly empty places too large and fuller ones beside them too small"):
        assert (phrase in text, phrase in before) == (True, False)
    assert "Numbers below zero" not in text
    assert text.count("(the released number lies outside), for this one alone)") == 1
    assert f" {signed(release.node_interval(middle)[1][0])} * " in text


def test_a_fine_release_is_drawn_coarser_and_says_so():
    html = reported(pure(Quadtree(height=8), load_point_sample("la_residents"), "0.5"))
    assert len(html) < MOST_BYTES
    text = Page(html).text
    assert "4,096 partitions (level 6). The release has finer levels, down to 65,536 partitions" in text
    assert text.count(", for this one alone)") == 4096


def test_arcs_are_the_strongest_pairs_and_point_from_light_to_strong_and_without_geometry_there_is_no_map():
    html = reported(placed_trips(columns=8, rows=8))
    page, regions = Page(html), re.search('<g class="shapes" fill-rule.*?</g>', html.decode(), re.DOTALL)[0]
    arcs = page.all("path", "arc")
    assert 0 < len(arcs) <= 200
    widths = [int(attrs["stroke-width"]) for attrs in arcs]
    assert widths == sorted(widths)
    gradients = {attrs["id"]: attrs for attrs in page.all("lineargradient")}
    for attrs in arcs:
        ends = gradients[attrs["stroke"].removeprefix("url(#").removesuffix(")")]
        assert re.match(rf"M{ends['x1']} {ends['y1']}A.* 1 {ends['x2']} {ends['y2']}$", attrs["d"])
    assert regions.count("<path") in (16, 64)
    assert page.all("svg", "map")
    page = page_of(trip_release())
    assert not page.all("svg", "map")
    assert "The released pairs with the most trips" in page.text


@pytest.mark.parametrize("kind", ["points", "trips", "areas"])
def test_hostile_texts_stay_texts(kind):
    words = replace(WORDS, **dict.fromkeys(("name", "curator", "description", "region", "intended_use"), HOSTILE))
    release = point_release()
    if kind != "points":
        regions = regions_with_shapes(names=[f"{HOSTILE}{place}" for place in range(4)], levels=(HOSTILE, f"{HOSTILE}2"))
        trips = lambda: TopDown().release(trip_counts_on(regions), ApproxBudget(5, "1e-6"), Entropy.system())  # noqa: E731
        release = trips() if kind == "trips" else pure(RegionTree(), areas_on(regions))
    page = page_of(release, words)
    assert not set(page.tags) & FETCHING
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert not set(page.text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    assert page.text.count("onerror=") >= (5 if kind == "points" else 9)
    assert "{{ 7*7 }}{% raw %}" in page.text
    assert page.tags.count("style") == page.tags.count("title") - page.tags[page.tags.index("body") :].count("title") == 1


def test_files_are_listed_with_their_hashes_once_they_are_known(tmp_path):
    release = point_release()
    assert "listed in its manifest.json" in page_of(release).text
    manifest = read_manifest(write_release(release, tmp_path / "out", describe(release, WORDS)))
    after = Page(report_html(release, manifest)).text
    assert manifest["files"]
    assert all(file["name"] in after and file["sha256"] in after for file in manifest["files"])


def test_simulations_and_references_get_no_report():
    manifest = describe(point_release(), WORDS)
    with pytest.raises(RefusedError, match="simulation"):
        report_html(Quadtree(height=2).release(points_of(50), PureBudget(1), Entropy.seeded(1)), manifest)
    with pytest.raises(RefusedError, match="NOT PRIVATE"):
        report_html(pure(ExactKdtree(height=2), points_of(50)), manifest)


FORMATS = [("geoparquet", "geojson", "csv"), ("csv",)]


@pytest.mark.parametrize("formats", FORMATS, ids="+".join)
@pytest.mark.parametrize(
    ("kind", "odd"), [("points", ""), *product(["areas", "trips", "list", "list, origins first"], ["=1+1'\"\\", "NA", "09001"])]
)
def test_the_code_in_a_report_adds_up_a_box_or_the_trips_from_a_region_as_the_release_does(kind, odd, formats, tmp_path, monkeypatch):
    if kind == "points":
        release = pure(Kdtree(height=2), points_of(400))
        expected = release.answer([[-6.0, 44.0, 2.0, 52.0]])[0]
    elif kind == "areas":
        regions = regions_with_shapes()
        regions.ids[0][0] = odd
        release = pure(RegionTree(), areas_on(regions), 5)
        expected = release.answer([odd], level=1)[0]
    else:
        regions = regions_with_shapes()
        regions.ids[1][0] = odd
        tree = "origin" if kind.endswith("first") else "destination"
        mechanism = TopDown() if kind == "trips" else FittedTree(false_discovery=0.01, tree=tree)
        release = mechanism.release(trip_counts_on(regions), ApproxBudget(5, "1e-6"), Entropy.system())
        ends, levels = ((["all"], [odd]), (0, 2)) if kind == "list" else (([odd], ["all"]), (2, 0))
        expected = release.answer(*ends, levels=levels)[0]
    manifest = describe(release, WORDS)
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", report_html(release, manifest, formats=formats).decode(), re.DOTALL)
    monkeypatch.chdir(write_release(release, tmp_path / "out", manifest, formats=formats))
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(html.unescape(code), "report", "exec"), {})  # noqa: S102
    both = kind != "points" and "geoparquet" in formats  # the code for Parquet, and that for CSV
    assert [float(line) for line in output.getvalue().split()] == pytest.approx([expected] * (2 if both else 1), rel=1e-6)
    assert expected > 0


def test_the_code_in_a_report_reads_a_csv_with_hidden_numbers(tmp_path, monkeypatch):
    release = hidden_release()
    manifest = describe(release, WORDS)
    (code,) = re.findall(r"<pre><code>(.*?)</code></pre>", report_html(release, manifest, formats=("csv",)).decode(), re.DOTALL)
    monkeypatch.chdir(write_release(release, tmp_path / "out", manifest, formats=("csv",)))
    exec(compile(html.unescape(code), "report", "exec"), {})  # noqa: S102


def test_areas_have_a_map_and_a_row_of_fitness_per_level_and_intervals_of_the_largest_hold_for_the_release():
    release = area_release()
    page = page_of(release)
    assert len(page.all("svg", "map")) == 2
    assert page.text.count(" all regions at once: ") == 2 + 4
    assert "Fitness for use by level" in page.text
    assert "all 7 numbers that this release could contain" in page.text
    low, high = release.interval(2, joint=True)
    assert f"D {release.count[release.nodes()][3]:,.0f} {low[3]:,.0f} {high[3]:,.0f}" in page.text
    assert "the whole" in page.text
    hidden = page_of(hidden_release())
    assert "A not shown: its count is under the threshold" in hidden.text
    assert "Regions whose number is not shown are grey" in hidden.text
    assert "A number that is missing" in hidden.text
    assert "below zero" not in hidden.text
    assert not page_of(CASES["areas without places"]()).all("svg", "map")


def test_counts_by_category_have_a_row_per_pair_of_levels_and_means_one_per_region():
    release = CASES["areas by hour"]()
    text = page_of(release).text
    assert all(f"{release.name_pair(pair)} " in text for pair in ((0, 1), (1, 2), (2, 2)))
    means = CASES["areas, means"]()
    text = page_of(means).text
    assert "The bounds of the values and their grid" in text
    assert f"{means.means(0)['mean'][0]:.4g}"[:4] in text
    assert all(name in text for name in means.regions.names_of(2))
