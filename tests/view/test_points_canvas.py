"""The panes of a point release: what they are called, what they say, their colours, and that the truth is in them only if it was passed."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from dpviz.data.points import PointCounts
from dpviz.evaluation.metrics import evaluate_points
from dpviz.families import POINT_FAMILY
from dpviz.mechanisms import HilbertTree, Kdtree, Quadtree
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.domain import Domain
from dpviz.view import points_canvas
from dpviz.view.canvas import TONES
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE
from dpviz.view.partition_looks import OVERLAP
from dpviz.view.points_canvas import ERROR, RELEASED, TRUE, ReleaseView, SquaresView, cell_box, density_top, has_squares
from dpviz.view.points_map import INTERPOLATED
from tests.often import often
from tests.scenes import PLANE, scene_of, unpack, words_at

METRES = Domain(bounds=(300_000, 5_000_000, 370_000, 5_070_000), crs="EPSG:32633", order=4)
TITLES = {
    RELEASED: "Released people",
    TRUE: "True people",
    ERROR: "Error: released minus true",
}
PUBLIC = {"released", "low", "high"}


def released(mechanism=None, *, domain=PLANE, epsilon=0.3):
    """A release of points in one corner of a domain, and the true counts of its partitions."""
    release, points = made(mechanism, domain=domain, epsilon=epsilon)
    return release, evaluate_points(release, points).truth


def made(mechanism=None, *, domain=PLANE, epsilon=0.3):
    """A release of points in one corner of a domain, and the points."""
    mechanism = mechanism or Quadtree(height=4)
    west, south, east, north = domain.bounds
    x, y = np.random.default_rng(5).uniform(0, 0.6, (2, 500))
    points = PointCounts.from_xy(west + x * (east - west), south + y * (north - south), domain=domain)
    budget = ApproxBudget(epsilon, 1e-6) if mechanism.needs_delta else PureBudget(epsilon)
    return mechanism.release(points, budget, Entropy.seeded(3)), points


def view_of(release, level=None, **options):
    return ReleaseView.of(release, release.height if level is None else level, **{"unit": "people", "dark": False, **options})


def message(view, *panes):
    """A message with panes of one release, as it is read."""
    return unpack(scene_of({"a": view.cells()}, *panes, domain=view.release.domain).pack())


def is_pale(pane):
    return pane.shades >= 2 * TONES


class TestPanes:
    @pytest.mark.parametrize("raw", [False, True])
    @pytest.mark.parametrize("shown", TITLES)
    def test_a_pane_says_what_it_shows_and_has_a_shade_and_numbers_for_every_partition(self, shown, raw):
        release, truth = released()
        view = view_of(release, truth=truth, raw=raw, about="Quadtree, run 3")
        pane = view.pane(shown, cells="a")
        measured = raw and shown == RELEASED
        assert pane.title == ("Measured people, before post-processing" if measured else TITLES[shown])
        assert pane.about == ("" if shown == TRUE else "Quadtree, run 3")
        header, arrays = message(view, pane)
        numbers = {name.removeprefix("a ") for name in arrays if name.startswith("a ")} - {"lines"}
        assert set(re.findall(r"\{(\w+)\}", pane.words)) == numbers == PUBLIC | {"true"} | ({"measured"} if raw else set())
        assert {len(arrays[f"a {name}"]) for name in numbers} == {len(pane.shades)} == {256}
        assert pane.shades.max() < len(pane.palette)
        assert all(
            words_at(header, arrays, 0, cell).startswith(f"true {truth[view.nodes[cell]]}, {'measured' if raw else 'released'} ")
            for cell in (0, 255)
        )

    def test_the_numbers_are_those_of_the_release_rounded(self):
        release, truth = released()
        view = view_of(release, truth=truth)
        _, arrays = message(view, view.pane(RELEASED, cells="a"))
        low, high = release.node_interval(view.nodes)
        expected = {"released": np.rint(release.count[view.nodes]), "low": low, "high": high, "true": truth[view.nodes]}
        for name, numbers in expected.items():
            np.testing.assert_array_equal(arrays[f"a {name}"], numbers)
        np.testing.assert_array_equal(arrays["a lines"].reshape(-1, 4), release.tree.rectangles(view.nodes))

    @pytest.mark.parametrize("mechanism", often(list(POINT_FAMILY.choices), 2))
    def test_every_mechanism_can_be_shown_at_every_level_and_as_measured(self, mechanism):
        release, truth = released(POINT_FAMILY.choices[mechanism]())
        for raw in (False, True):
            for level in range(release.height + 1):
                view = view_of(release, level, truth=truth, raw=raw)
                header, arrays = message(view, *(view.pane(shown, cells="a") for shown in TITLES))
                for about in header["panes"]:
                    assert len(arrays[about["shades"]]) == len(view.nodes)
                assert words_at(header, arrays, 0, 0)

    def test_a_released_number_outside_its_interval_is_marked_where_negative_counts_were_spread(self):
        release, _ = made(Quadtree(height=4, negative="spread"))
        view = view_of(release)
        header, arrays = message(view, view.pane(RELEASED, cells="a"))
        said = [words_at(header, arrays, 0, cell) for cell in range(len(view.nodes))]
        outside = release.lies_outside(view.nodes)
        assert 0 < outside.sum() < len(outside)
        assert [text.endswith("(the released number lies outside)") for text in said] == outside.tolist()

    def test_as_measured_shows_the_first_measurement_and_says_where_there_is_none(self):
        release, _ = released()
        nodes = release.nodes(4)
        whole = view_of(release, raw=True)
        np.testing.assert_array_equal(whole.cells().numbers["measured"], np.rint(release.noisy[nodes]))
        assert whole.pane(RELEASED, cells="a").note == ""
        noisy = release.noisy.copy()
        noisy[nodes[:3]] = np.nan
        part = view_of(replace(release, noisy=noisy), raw=True)
        np.testing.assert_array_equal(part.cells().numbers["measured"][:3], np.rint(release.count[nodes[:3]]))
        assert part.pane(RELEASED, cells="a").note.startswith("3 partitions were not measured themselves")

    def test_interpolation_is_a_picture_that_says_nothing_about_partitions(self):
        release, truth = released(Quadtree(height=2, fill="interpolated"))
        view = view_of(release, truth=truth)
        pane = view.pane(INTERPOLATED, cells="a")
        assert (pane.title, pane.cells, pane.words, len(pane.shades)) == ("Released people, interpolated", "", "", 0)
        assert "which keep their counts" in pane.note
        assert Image.open(io.BytesIO(pane.picture)).format == "PNG"
        assert "people per unit of area" in pane.legend.title


class TestSquares:
    @pytest.mark.parametrize("zoom", [0, 2, 4])
    def test_marks_are_the_squares_that_an_evaluation_counts(self, zoom):
        release, points = made()
        row = evaluate_points(release, points).by_zoom.iloc[zoom]
        pane = SquaresView.of(release, points.blocks, zoom, dark=False, about="Quadtree").pane(cells="a")
        assert (int((pane.shades == 1).sum()), int((pane.shades == 2).sum())) == (row["false_positives"], row["false_negatives"])
        assert [text.split(": ")[1] for _, text in pane.legend.marks] == [
            f"{row['false_positives']:.0f} of {row['empty']:.0f}",
            f"{row['false_negatives']:.0f} of {4**zoom - row['empty']:.0f}",
        ]
        assert [tuple(color[:3]) for color in pane.palette[1:].tolist()] == [FALSE_POSITIVE, FALSE_NEGATIVE]

    def test_a_square_says_its_true_count_and_at_least_one_record_where_it_is_released_as_occupied(self):
        release, points = made()
        view = SquaresView.of(release, points.blocks, 3, dark=False)
        cells, kinds = view.cells(), view.pane(cells="a").shades
        west, south = points.column // 2, points.row // 2  # a square of level 3 is 2 x 2 cells of the lattice
        truth = np.bincount(south * 8 + west, points.count, 64)
        assert cells.numbers["true"].tolist() == truth.tolist()
        assert ((cells.numbers["released"] >= 1) == (release.blocks(3).ravel() >= 0.5)).all()
        assert ((kinds == 1) == ((truth == 0) & (cells.numbers["released"] >= 1))).all()
        assert cells.rectangles[9].tolist() == [2, 2, 4, 4]
        assert cell_box(view, 9) == tuple(PLANE.coordinates(np.array([[2, 2, 4, 4]]))[0])

    def test_squares_of_a_partition_that_was_not_divided_share_its_count(self):
        release, points = made(Quadtree(height=1), epsilon=100)
        view = SquaresView.of(release, points.blocks, 4, dark=False)
        np.testing.assert_array_equal(view.cells().numbers["released"].reshape(16, 16)[:8, :8], round(release.count[1] / 64))

    def test_many_squares_are_one_picture_and_in_a_projected_domain_coarser(self, monkeypatch):
        monkeypatch.setattr(points_canvas, "FINEST_SQUARES", 3)
        release, points = made()
        pane = SquaresView.of(release, points.blocks, 4, dark=True).pane(cells="a")
        assert (pane.cells, len(pane.shades)) == ("", 0)
        assert pane.note == "256 squares, drawn as one picture: numbers show at coarser levels."
        assert Image.open(io.BytesIO(pane.picture)).format == "PNG"
        release, points = made(domain=METRES)
        view = SquaresView.of(release, points.blocks, 4, dark=False)
        assert (view.zoom, view.fits, len(view.cells().rectangles)) == (3, True, 64)

    def test_true_counts_are_pale_where_there_is_nothing_and_have_a_scale_from_outside(self):
        release, points = made(Quadtree(height=1))
        view = SquaresView.of(release, points.blocks, 3, dark=False)
        pane = view.truth_pane(cells="a", unit="people", top=5.0)
        assert (pane.title, pane.legend.top) == ("True people", "5 and more")
        assert (is_pale(pane) == (points.blocks(3).ravel() == 0)).all()

    def test_a_full_quadtree_has_the_squares_of_its_level_and_a_tree_of_medians_does_not(self):
        assert has_squares(made()[0], 3, 3)
        assert not has_squares(made()[0], 3, 2)
        assert not has_squares(made(Kdtree(height=2))[0], 2, 2)

    def test_a_rectangle_that_is_not_there_has_no_box(self):
        release, points = made()
        view = SquaresView.of(release, points.blocks, 1, dark=False)
        assert cell_box(view, -1) is None
        assert cell_box(view, 4) is None


class TestColours:
    def test_released_counts_are_pale_exactly_where_the_interval_contains_zero(self):
        release, truth = released()
        low, high = release.node_interval(release.nodes(4))
        contains = (low <= 0) & (high >= 0)
        for options in ({}, {"truth": truth}):
            pane = view_of(release, **options).pane(RELEASED, cells="a")
            assert 0 < contains.sum() < len(contains)
            assert (is_pale(pane) == contains).all()
            assert pane.legend.marks[-1][1] == "pale: may be 0"

    def test_true_counts_are_pale_exactly_where_there_is_nothing(self):
        release, truth = released()
        pane, nothing = view_of(release, truth=truth).pane(TRUE, cells="a"), truth[release.nodes(4)] == 0
        assert 0 < nothing.sum() < len(nothing)
        assert (is_pale(pane) == nothing).all()
        assert pane.legend.marks == ()

    def test_errors_are_not_pale(self):
        release, truth = released()
        pane = view_of(release, truth=truth).pane(ERROR, cells="a")
        assert not is_pale(pane).any()
        assert "pale" not in str(pane.legend)

    def test_a_reference_has_no_interval_to_doubt(self):
        release, truth = released(POINT_FAMILY.choices["exact_kdtree"](), epsilon=1)
        assert not is_pale(view_of(release, truth=truth).pane(RELEASED, cells="a")).any()

    def test_a_shared_top_gives_the_same_density_the_same_shade(self):
        release, _ = released()
        count = release.count.copy()
        count[release.nodes(4)[:20]] *= 1000
        panes = {
            top: [view_of(each).pane(RELEASED, cells="a", top=top) for each in (release, replace(release, count=count))]
            for top in (None, 7.0)
        }
        own, shared = ([pane.shades[20:] % (2 * TONES) for pane in each] for each in panes.values())
        assert (own[0] != own[1]).any()
        assert (shared[0] == shared[1]).all()
        assert panes[7.0][0].legend.top == panes[7.0][1].legend.top == "7 and more"

    def test_the_top_of_densities_comes_from_public_blocks_alone(self):
        release, _ = released()
        counts, areas = np.full((4, 4), 30), np.array([1.0, 1.0, 1.0, 1.0])
        other = replace(release, count=release.count * 1000)
        assert [density_top(counts, areas, each, "people") for each in (release, other)] == [30, 30]

    def test_no_scale_depends_on_the_truth(self):
        release, truth = released()
        for shown in TITLES:
            one, other = (view_of(release, truth=each).pane(shown, cells="a").legend for each in (truth, truth * 1000 + 7))
            assert replace(one, marks=()) == replace(other, marks=())


class TestWithoutTheTruth:
    @pytest.mark.parametrize("shown", TITLES)
    def test_every_pane_shows_released_counts_and_no_number_of_the_truth_is_sent(self, shown):
        release, truth = released()
        view = view_of(release)
        pane = view.pane(shown, cells="a")
        assert pane.title == TITLES[RELEASED]
        header, arrays = message(view, pane)
        assert {name for name in arrays if name.startswith("a ")} == {"a lines", *(f"a {name}" for name in PUBLIC)}
        assert "true" not in pane.words
        assert (header, arrays.keys()) == (message(view, view.pane(RELEASED, cells="a"))[0], arrays.keys())
        known = view_of(release, truth=truth).pane(RELEASED, cells="a")
        assert (pane.shades == known.shades).all()
        assert pane.legend == known.legend


class TestManyAndOverlapping:
    def test_pieces_of_a_curve_are_noted_drawn_large_first_and_can_be_seen_through(self):
        release, truth = released(HilbertTree(), epsilon=5)
        assert release.tree.overlaps
        view = view_of(release, truth=truth)
        pane = view.pane(RELEASED, cells="a")
        assert pane.note == OVERLAP
        assert pane.palette[:, 3].max() < 0.75 * 255
        west, south, east, north = view.cells().rectangles.T
        assert (np.diff((east - west) * (north - south)) <= 0).all()
        assert (view.cells().numbers["true"] == truth[view.nodes]).all()

    def test_too_many_partitions_are_one_picture_with_the_south_west_at_the_bottom_left(self, monkeypatch):
        monkeypatch.setattr(points_canvas, "MOST_CELLS", 255)
        release, truth = released()
        truth = np.zeros_like(truth)
        truth[release.tree.leaf_of(np.array([0]), np.array([0]))] = 1000
        view = view_of(release, truth=truth)
        pane = view.pane(TRUE, cells="a")
        assert not view.fits
        assert (pane.cells, len(pane.shades)) == ("", 0)
        assert pane.note == "256 partitions, drawn as one picture: numbers show at coarser levels."
        strong = np.asarray(Image.open(io.BytesIO(pane.picture)))[:, :, 0] < 50
        height, width = strong.shape
        assert strong.mean() == pytest.approx(1 / 256, rel=0.1)
        assert strong[-height // 20 :, : width // 20].all()
        assert view_of(release, 3).fits

    def test_a_projected_domain_with_too_many_falls_back_to_a_coarser_level(self, monkeypatch):
        release, truth = released(domain=METRES)
        assert len(view_of(release).nodes) == 256
        monkeypatch.setattr(points_canvas, "MOST_CELLS", 100)
        view = view_of(release, truth=truth)
        assert len(view.nodes) == 64
        header, arrays = message(view, view.pane(RELEASED, cells="a"))
        assert len(arrays["a corners"]) == 8 * 64
        assert "picture" not in header["panes"][0]
