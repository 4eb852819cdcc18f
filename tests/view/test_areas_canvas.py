"""Panes of regions: colours, texts, legends and notes, as the canvas and SVG show them."""

from dataclasses import replace

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

import dpviz as dv
from dpviz.errors import DomainError
from dpviz.view import areas_drawing
from dpviz.view.areas_canvas import areas_of, make_pane, released_scene
from dpviz.view.areas_drawing import (
    ERROR,
    FALSE_POSITIVES,
    NO_NUMBER,
    RELEASED,
    SHOWN_AREAS,
    TRUE,
    AreasMapSettings,
    Denominator,
    RegionsOnMap,
    choose_tops,
    draw_areas,
)
from dpviz.view.canvas import Scene
from dpviz.view.colors import PAPER
from dpviz.view.scene_svg import draw_svg
from tests.scenes import unpack

HOSTILE = "<script>{x}</script>*_"


def squares(names=None):
    """Nine squares in three rows, which are districts."""
    table = geopandas.GeoDataFrame(
        {"row": [f"r{place // 3}" for place in range(9)], "cell": [f"c{place}" for place in range(9)]},
        geometry=[shapely.box(place % 3, place // 3, place % 3 + 1, place // 3 + 1) for place in range(9)],
        crs="EPSG:4326",
    )
    if names is None:
        return dv.Regions.from_table(table, levels=["row", "cell"])
    return dv.Regions.from_table(table.assign(title=names), levels=["row", "cell"], names={"cell": "title"})


COUNTS = [0, 5, 900, 0, 40, 3, 0, 1200, 70]


@pytest.fixture(scope="module")
def case():
    """Areas, a release with much noise, and where its regions lie."""
    areas = dv.AreaCounts.from_counts(COUNTS, regions=squares())
    release = dv.RegionTree().release(areas, dv.PureBudget("0.2"), dv.Entropy.seeded(4))
    return areas, release, RegionsOnMap(areas.regions)


def drawn(case, level=2, shown=RELEASED, *, truth=True, **options):
    areas, release, on_map = case
    view = AreasMapSettings(level=level, shown=shown, **options)
    return draw_areas(release, on_map, view, areas.level_counts()[level] if truth else None)


def residents(numbers):
    return Denominator(words="per 1,000 residents", numbers=pd.Series(numbers, index=[f"c{place}" for place in range(9)]), per=1000)


def marks_of(drawing):
    return [words for _, words in drawing.legend.marks]


class TestColours:
    def test_larger_counts_are_stronger_and_empty_ones_pale(self, case):
        color = drawn(case, shown=TRUE).areas.color
        assert color[7, :3].sum() < color[4, :3].sum()
        assert color[0].astype(int).sum() > color[5].astype(int).sum()
        assert marks_of(drawn(case, shown=TRUE)) == []

    def test_released_regions_are_pale_where_the_interval_contains_0(self, case):
        _, release, _ = case
        drawing = drawn(case)
        low, _ = release.interval(2)
        assert (low <= 0).any()
        assert "pale: may be 0" in marks_of(drawing)
        light = drawing.areas.color.astype(int).sum(axis=1)
        assert light[low <= 0].min() > light[low > 0].max()

    def test_the_error_has_a_colour_for_each_sign(self, case):
        areas, release, _ = case
        drawing = drawn(case, shown=ERROR)
        error = release.count[release.nodes(2)] - areas.level_counts()[2]
        red, blue = drawing.areas.color[:, 0].astype(int), drawing.areas.color[:, 2].astype(int)
        clear = np.abs(error) > 2
        assert ((blue > red) == (error > 0))[clear].all()
        assert drawing.legend.low.startswith("−")

    def test_false_positives_and_negatives_are_counted(self, case):
        areas, release, _ = case
        truth, count = areas.level_counts()[2], release.count[release.nodes(2)]
        wrong, missed = int(((truth == 0) & (count >= 0.5)).sum()), int(((truth > 0) & (count < 0.5)).sum())
        drawing = drawn(case, shown=FALSE_POSITIVES)
        assert marks_of(drawing) == [f"empty, released as occupied: {wrong} of 3", f"occupied, released as empty: {missed} of 6"]
        assert (drawing.areas.color[:, :3] != PAPER[False]).any(axis=1).sum() == wrong + missed

    def test_without_the_truth_every_view_shows_released_counts(self, case):
        drawings = [drawn(case, shown=shown, truth=False) for shown in SHOWN_AREAS]
        assert {drawing.title for drawing in drawings} == {"Released records"}
        assert all(drawing.areas.texts.truth is None for drawing in drawings)

    def test_scales_can_be_shared(self, case):
        areas, release, _ = case
        tops = choose_tops(release, AreasMapSettings(level=2), areas.level_counts()[2])
        legends = [drawn(case, tops=tops, shown=shown).legend for shown in (TRUE, RELEASED)]
        assert legends[0].top == legends[1].top == "1,200 and more"


class TestRates:
    def test_rates_divide_counts_and_regions_without_a_number_are_grey(self, case):
        rate = residents([0, *[100] * 8])
        drawing = drawn(case, rate=rate, shown=TRUE)
        assert (drawing.areas.color[0] == NO_NUMBER).all()
        assert "nothing to divide by" in marks_of(drawing)
        assert drawing.title == "True records per 1,000 residents"
        assert drawing.legend.title == "records per 1,000 residents"

    def test_numbers_of_leaves_are_added_up_for_larger_regions(self, case):
        _, release, _ = case
        factors = residents([0, 100, 300, *[0] * 6]).factors(release.regions, 1)
        assert factors[0] == 1000 / 400
        assert np.isnan(factors[1:]).all()

    def test_the_text_of_a_count_may_have_a_rate_too(self, case):
        lines = drawn(case, also=residents([100] * 9)).areas.texts.lines()
        assert all(" per 1,000 residents (95 %: " in line for line in lines)


class TestTexts:
    def test_a_region_says_its_name_count_intervals_and_truth(self, case):
        _areas, release, _ = case
        text = drawn(case).areas.texts.lines()[7].split("\n")
        low, high = release.interval(2)
        assert text[:3] == [
            "cell c7",
            f"released {release.count[release.nodes(2)][7]:,.0f} records",
            f"95 %: {low[7]:,.0f} to {high[7]:,.0f}",
        ]
        assert text[3].startswith("all regions at once: ")
        assert text[4].startswith("true 1,200, error ")

    def test_measured_counts_are_said_beside_released_ones(self, case):
        _, release, _ = case
        assert drawn(case, raw=True).areas.texts.lines()[7].split("\n")[1] == f"measured {release.noisy[release.nodes(2)][7]:,.0f}"

    def test_a_level_that_was_not_measured_says_so(self, case):
        areas, _, on_map = case
        flat = dv.FlatAreas().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
        drawing = draw_areas(flat, on_map, AreasMapSettings(level=1, raw=True))
        assert "was not measured itself" in drawing.note
        assert drawing.areas.texts.text[0].startswith("not measured\n")

    def test_hidden_regions_are_grey_and_named_so(self, case):
        areas, _, on_map = case
        flat = dv.FlatAreas(threshold=30).release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
        drawing = draw_areas(flat, on_map, AreasMapSettings(level=2))
        assert (drawing.areas.color[flat.hidden] == NO_NUMBER).all()
        assert "not shown: under the threshold" in marks_of(drawing)
        assert f"{flat.hidden.sum():,} regions are under the threshold" in drawing.note

    def test_hostile_names_stay_texts(self):
        areas = dv.AreaCounts.from_counts(COUNTS, regions=squares([HOSTILE] * 9))
        release = dv.RegionTree().release(areas, dv.PureBudget(1), dv.Entropy.seeded(1))
        drawing = draw_areas(release, RegionsOnMap(areas.regions), AreasMapSettings(level=2, unit=HOSTILE))
        assert not any("<script>{x}" in text for text in drawing.areas.texts.lines())


class TestScenes:
    def test_panes_of_one_release_share_its_regions(self, case):
        drawings = [drawn(case, shown=shown) for shown in (TRUE, RELEASED)]
        panes = tuple(make_pane(each, areas="first", about="run 1", chosen=(2, 5)) for each in drawings)
        scene = Scene(bounds=case[2].bounds, areas={"first": areas_of(drawings[0])}, panes=panes, description="Two maps.", dark=False)
        header, arrays = unpack(scene.pack())
        assert [pane["areas"] for pane in header["panes"]] == [["first"], ["first"]]
        assert [pane["chosen"] for pane in header["panes"]] == [[2, 5], [2, 5]]
        assert len(arrays["first owner"]) == 9
        assert len(arrays["1 fill 0"]) == 36
        assert draw_svg(scene).count("<path") >= 18

    def test_regions_of_points_are_circles(self, case):
        _areas, release, _ = case
        points = [shapely.Point(place % 3, place // 3) for place in range(9)]
        table = geopandas.GeoDataFrame(
            {"row": [f"r{place // 3}" for place in range(9)], "cell": [f"c{place}" for place in range(9)]}, geometry=points, crs="EPSG:4326"
        )
        on_map = RegionsOnMap(dv.Regions.from_table(table, levels=["row", "cell"]))
        drawing = draw_areas(release, on_map, AreasMapSettings(level=2))
        assert not drawing.areas.shapes.polygons
        assert drawing.legend.title.endswith("; one circle per cell")

    @pytest.mark.parametrize("wrong", [{"level": 0}, {"level": 3}, {"level": 1, "shown": "x"}])
    def test_levels_and_views_that_do_not_exist_are_refused(self, case, wrong):
        _, release, on_map = case
        with pytest.raises(DomainError):
            draw_areas(release, on_map, replace(AreasMapSettings(level=1), **wrong))

    def test_regions_without_a_place_are_refused(self, case):
        _, release, _ = case
        bare = dv.Regions.from_table(pd.DataFrame({"row": ["a"], "cell": ["b"]}), levels=["row", "cell"])
        with pytest.raises(DomainError, match="neither outlines nor points"):
            draw_areas(release, RegionsOnMap(bare), AreasMapSettings(level=1))


@pytest.fixture(scope="module")
def cells():
    """A release of H3 cells, and where they lie."""
    pytest.importorskip("h3")
    regions = dv.Regions.h3((4.8, 45.7, 4.9, 45.8), resolutions=(5, 7))
    areas = dv.AreaCounts.from_counts(np.arange(regions.size(2)), regions=regions)
    return dv.RegionTree().release(areas, dv.PureBudget(1), dv.Entropy.seeded(4)), RegionsOnMap(regions)


class TestHexagons:
    """H3 cells reach the browser by their indexes, and pictures without a map library by their polygons."""

    def test_the_canvas_gets_indexes_and_centres_alone(self, cells):
        release, on_map = cells
        drawing = draw_areas(release, on_map, AreasMapSettings(level=2))
        scene = released_scene(on_map, drawing, (), dark=False, height=400)
        _, arrays = unpack(scene.pack())
        low, high = arrays["regions cells"].reshape(-1, 2).T.astype(np.uint64)
        assert [f"{code:x}" for code in (high << np.uint64(32) | low).tolist()] == release.regions.ids_of(2).tolist()
        assert {name for name in arrays if name.startswith("regions")} == {"regions cells", "regions centres"}
        assert "circle" not in drawing.legend.title
        assert draw_svg(scene).count("<path d=") >= release.regions.size(2)

    def test_polygons_are_drawn_where_pydeck_has_no_hexagons(self, cells, monkeypatch):
        release, _ = cells
        monkeypatch.setattr(areas_drawing, "_has_hexagon_layer", lambda: False)
        shapes = RegionsOnMap(release.regions).shapes(2)
        assert (len(shapes.polygons), shapes.cells) == (release.regions.size(2), None)

    def test_coarser_levels_that_are_no_cells_are_polygons(self, cells):
        release, _ = cells
        grouped = RegionsOnMap(release.regions.grouped([5]))
        assert grouped.shapes(1).polygons
        assert grouped.shapes(2).cells is not None
