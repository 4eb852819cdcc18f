import numpy as np
import pytest

from dpviz.lessons.day import HOUR, PART, PLACES, city, read_day, release_city, usual_places


@pytest.mark.parametrize("by", [HOUR, PART])
@pytest.mark.parametrize("level", PLACES)
def test_a_day_is_that_of_the_release_beside_the_truth(level, by):
    release, place = release_city(0.1, 1), usual_places()[PLACES.index(level)]
    shown, day = release.to_frame((level, by)), read_day(level, by, 0.1, 1)
    here = shown[shown["region"] == release.regions.ids_of(release.regions.level_number(level))[place]]
    np.testing.assert_allclose(day["count"], here["count"])
    assert day["truth"].sum() == city().level_counts()[PLACES.index(level) + 1][place]
    assert (day["high"] - day["low"]).to_numpy() == pytest.approx(2 * 2.118 * here["stddev"].to_numpy(), rel=1e-3)
    assert day["even"].nunique() == 1


def test_places_lie_in_each_other():
    district, tract, block = usual_places()
    regions = city().regions
    assert (regions.parent[1][tract], regions.parent[2][block]) == (district, tract)
