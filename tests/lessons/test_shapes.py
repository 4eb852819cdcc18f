"""The lesson on shapes: the same people everywhere, regions of one size, and errors as theory says."""

import numpy as np
import pytest
import shapely

from dpviz.data.areas import AreaCounts
from dpviz.lessons.shapes import COUNTIES, HEXAGONS, RADII, SHAPES, SQUARES, ShapesOfRegions, circle_errors, count_people, homes, regions_of
from dpviz.mechanisms import FlatAreas
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy

PEOPLE = 5000


def test_every_shape_holds_the_same_people():
    assert homes(PEOPLE).shape == (PEOPLE, 2)
    for shape in SHAPES:
        areas = count_people(shape, PEOPLE)
        assert areas.count.sum() + areas.outside == PEOPLE
        assert areas.outside <= 0.002 * PEOPLE


def test_squares_and_hexagons_are_as_large_as_an_average_county_and_fit_together():
    county = regions_of(COUNTIES).outlines(1).area.mean()
    for shape, corners in ((SQUARES, 4), (HEXAGONS, 6)):
        outlines = regions_of(shape).outlines(1)
        assert np.allclose(outlines.area, county)
        assert set(shapely.get_num_coordinates(outlines.to_numpy())) == {corners + 1}
        assert len(regions_of(shape).overlaps) == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_the_error_of_circles_is_that_of_cut_regions_and_noise(shape):
    truth = count_people(shape, PEOPLE)
    runs = [FlatAreas().release(truth, PureBudget("0.05"), Entropy.seeded(seed)) for seed in range(60)]
    tables = [circle_errors(release, truth, shape, PEOPLE) for release in runs]
    measured = np.sqrt(np.mean([table["measured"] ** 2 for table in tables], axis=0))
    assert measured == pytest.approx(tables[0]["y"].to_numpy(), rel=0.15)
    assert (tables[0]["cut"] <= tables[0]["y"]).all()
    assert tables[0]["x"].tolist() == list(RADII)


def test_without_noise_only_cut_regions_are_wrong():
    truth = count_people(HEXAGONS, PEOPLE)
    exact = FlatAreas().release(truth, PureBudget(10**9), Entropy.seeded(1))
    table = circle_errors(exact, truth, HEXAGONS, PEOPLE)
    assert table["measured"].tolist() == pytest.approx(table["cut"].tolist(), rel=1e-6)


def test_counties_are_known_well_more_often():
    figures = {figure.label: figure.value for figure in ShapesOfRegions().show().figures}
    known = [float(figures[f"{shape.capitalize()} known well"].removesuffix(" %")) for shape in SHAPES]
    assert known[0] > max(known[1:])


def test_empty_regions_are_regions_of_the_frame():
    assert isinstance(count_people(SQUARES, PEOPLE), AreaCounts)
    assert (count_people(SQUARES, PEOPLE).level_counts()[1] == 0).any()
