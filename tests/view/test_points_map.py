"""The map of a point release: its size and content; true counts are in it only if they were passed."""

import base64
import io
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import evaluate
from dpviz.mechanisms import Identity, Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.samples.points import load_sample
from dpviz.space.domain import Domain
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE
from dpviz.view.partition_looks import OVERLAP
from dpviz.view.points_map import (
    INTERPOLATED,
    MOST_FEATURES,
    SHOWN,
    can_show_interpolation,
    drawable_level,
    points_map,
)
from tests.space.curves import curve_tree, tree_of
from tests.trees import release_of

BYTES = 5_000_000
PLANE = Domain(bounds=(0, 0, 16, 16), crs=None, order=4)
METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=8)
PUBLIC = {"p", "c", "i", "n", "a", "b"}


def released(domain=PLANE, mechanism=None, epsilon=1.0, seed=3):
    rng = np.random.default_rng(5)
    west, south, east, north = domain.bounds
    x, y = rng.uniform(0, 0.6, 500), rng.uniform(0, 0.6, 500)
    points = PointCounts.from_xy(west + x * (east - west), south + y * (north - south), domain=domain)
    release = (mechanism or Quadtree(height=4)).release(points, PureBudget(epsilon), Entropy.seeded(seed))
    return release, evaluate(release, points).truth


def drawn(picture):
    layers = json.loads(picture.deck.to_json())["layers"]
    return next(layer for layer in layers if layer["id"] in ("partitions", "picture", "truth"))


def mapped(release, level=None, shown="Released", dark=False, truth=None):
    return points_map(release, release.height if level is None else level, shown, unit="people", dark=dark, truth=truth)


def test_a_map_of_200_000_people_is_small_at_every_zoom():
    points = load_sample("la_residents")
    release = Quadtree(height=8).release(points, PureBudget(0.5), Entropy.seeded(1))
    truth = evaluate(release, points).truth
    for level in (0, 5, 7, 8):
        picture = mapped(release, level, truth=truth)
        text = picture.deck.to_json()
        assert len(text.encode()) < BYTES
        assert "://" not in text
        layer = drawn(picture)
        if 4**level > MOST_FEATURES:
            assert layer["id"] == "picture"
            assert picture.note == "65,536 partitions are drawn as one picture; hover and click work at zoom levels 0 to 7."
            assert picture.deck._tooltip is False
        else:
            assert picture.note is None
            assert sorted(row["i"] for row in layer["data"]) == sorted(release.nodes(level).tolist())


def test_interpolation_is_a_bitmap_of_the_density_that_answers_assume():
    release, _ = released(mechanism=Quadtree(height=2, inside="interpolated"))
    picture = mapped(release, shown=INTERPOLATED)
    assert can_show_interpolation(release)
    assert drawn(picture)["id"] == "picture"
    assert "interpolated inside partitions" in picture.description
    assert "density is interpolated between neighbours" in picture.note
    assert can_show_interpolation(replace(release, inside="log-linear"))
    assert not can_show_interpolation(replace(release, inside="uniform"))


@pytest.mark.parametrize("shown", SHOWN)
def test_only_what_is_drawn_goes_to_the_browser_with_an_alternative_text_and_a_title_with_units(shown):
    release, truth = released()
    rows = drawn(mapped(release, shown=shown))["data"]
    assert all(set(row) == PUBLIC for row in rows)
    assert rows == drawn(mapped(release))["data"], "without the truth every map is the released one"
    picture = mapped(release, shown=shown, truth=truth)
    assert all(set(row) == PUBLIC | {"t", "e"} for row in drawn(picture)["data"])
    assert picture.description.startswith("Map of 256 partitions, ")
    assert picture.description.endswith(".")
    assert ("people" in picture.legend) == (shown != "False positives")


def test_neither_the_released_map_nor_any_scale_depends_on_the_truth():
    release, truth = released()
    plain = mapped(release)
    picture = mapped(release, truth=truth * 1000 + 7)
    assert (picture.legend, picture.description) == (plain.legend, plain.description)
    assert [row["c"] for row in drawn(picture)["data"]] == [row["c"] for row in drawn(plain)["data"]]
    for shown in ("True", "Error", "False positives"):
        assert mapped(release, shown=shown, truth=truth).legend == mapped(release, shown=shown, truth=truth * 1000).legend


def test_the_tooltip_marks_a_count_outside_its_interval():
    release, _ = released(mechanism=Quadtree(height=4, negative="spread"), epsilon=0.3)
    outside = release.lies_outside(release.nodes())
    assert 0 < outside.sum() < len(outside)
    rows = drawn(mapped(release))["data"]
    assert [row["b"].endswith(" (the released number lies outside)") for row in rows] == outside.tolist()


def test_the_tooltip_has_count_interval_truth_and_error():
    release, truth = released(epsilon=0.1)
    low, high = release.node_interval(release.tree.leaves)
    for place, row in enumerate(drawn(mapped(release, truth=truth))["data"]):
        node = row["i"]
        shown = [float(row[name].replace(",", "").replace("−", "-")) for name in "nabte"]
        assert shown == [round(release.count[node]), low[place], high[place], truth[node], round(release.count[node]) - truth[node]]
        assert "−0" not in (row["n"], row["a"], row["b"])


def test_marks_follow_presence():
    release, truth = released(epsilon=0.3)
    nodes = release.tree.leaves
    wrong = {FALSE_POSITIVE: (truth == 0) & (release.count >= 0.5), FALSE_NEGATIVE: (truth > 0) & (release.count < 0.5)}
    rows = drawn(mapped(release, shown="False positives", truth=truth))["data"]
    for color, where in wrong.items():
        assert where[nodes].any()
        assert {row["i"] for row in rows if tuple(row["c"][:3]) == color} == set(nodes[where[nodes]].tolist())


def test_densities_are_per_area_and_too_fine_a_level_of_a_projected_domain_is_drawn_coarser():
    assert "people per unit of area" in mapped(released()[0]).legend
    release, _ = released(METRES, Identity(order=8))
    assert drawable_level(release, 8) == (7, "Zoom level 7 is shown: finer ones have more than 20,000 partitions.")
    assert drawable_level(release, 7) == (7, None)
    picture = mapped(release)
    assert "people per km²" in picture.legend
    assert len(drawn(picture)["data"]) == 4**7
    assert "Zoom level 7 is shown" in picture.note
    assert len(picture.deck.to_json()) < BYTES


def curved(tree):
    return release_of(tree, np.random.default_rng(2).normal(50, 30, len(tree)), np.ones(len(tree)))


def test_boxes_that_overlap_are_drawn_large_ones_first_and_can_be_seen_through():
    release = curved(curve_tree(np.random.default_rng(1)))
    for level in range(release.height + 1):
        picture = mapped(release, level)
        rows = drawn(picture)["data"]
        assert picture.note == OVERLAP
        nodes = np.array([row["i"] for row in rows])
        assert set(nodes.tolist()) == set(release.nodes(level).tolist())
        area = np.prod(np.diff(release.tree.rectangles(nodes).reshape(-1, 2, 2), axis=1)[:, 0], axis=1)
        assert (np.diff(area) <= 0).all()
        assert max(row["c"][3] for row in rows) < 0.75 * 255
        for row, (west, south, east, north) in zip(rows, release.tree.rectangles(nodes).tolist(), strict=True):
            assert np.ptp(row["p"], axis=0).tolist() == pytest.approx([(east - west) / 32, (north - south) / 32])
            assert row["n"] == f"{round(release.count[row['i']]) + 0:,}".replace("-", "−")


def test_the_note_names_both_overlap_and_another_level(monkeypatch):
    monkeypatch.setattr("dpviz.view.points_map.MOST_FEATURES", 20)
    tree = tree_of([[(0, 64)], [(0, 30), (30, 64)], list(pairwise(range(65)))], [[-1], [0, 0], [0] * 30 + [1] * 34], 3, 3)
    picture = mapped(replace(curved(tree), domain=replace(METRES, order=3)))
    assert picture.note == f"Zoom level 1 is shown: finer ones have more than 20 partitions. {OVERLAP}"
    assert len(drawn(picture)["data"]) == 2


def test_a_picture_shows_pieces_of_the_curve_with_the_south_west_at_the_bottom_left():
    order = 8
    lines = np.arange(0, 4**order + 1, 2).tolist()
    tree = tree_of([[(0, 4**order)], list(pairwise(lines))], [[-1], [0] * (4**order // 2)], order, order)
    picture = mapped(replace(curved(tree), count=np.r_[0, 1000, np.zeros(4**order // 2 - 1)]))
    assert OVERLAP not in picture.note
    code = drawn(picture)["image"].split(",", 1)[1].removesuffix("'")
    strong = np.asarray(Image.open(io.BytesIO(base64.b64decode(code))))[:, :, 3] > 200
    height, width = strong.shape
    assert strong.mean() == pytest.approx(2 / 4**order, rel=0.1)
    assert strong[-height // 256 :, : 2 * width // 256].all()
