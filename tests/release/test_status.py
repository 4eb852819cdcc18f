"""Every table of a release says what the release is, so that a simulation stays known as one wherever it goes."""

import geopandas
import pandas as pd
import pytest

from dpviz.mechanisms import ExactKdtree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.receipt import NOT_PRIVATE, PRIVATE, SIMULATION
from tests.flow_cases import trips_of
from tests.release_cases import points_of

KINDS = {
    "simulation": (Quadtree(height=2), Entropy.seeded(1), SIMULATION),
    "private": (Quadtree(height=2), Entropy.system(), PRIVATE),
    "reference": (ExactKdtree(height=2), Entropy.system(), NOT_PRIVATE),
    "seeded reference": (ExactKdtree(height=2), Entropy.seeded(1), NOT_PRIVATE),
}


@pytest.mark.parametrize(("mechanism", "entropy", "status"), KINDS.values(), ids=KINDS)
def test_every_frame_of_points_says_what_it_is_also_in_a_file(mechanism, entropy, status, tmp_path):
    release = mechanism.release(points_of(200), PureBudget(1), entropy)
    assert release.status == status
    for level in (None, *range(release.height + 1)):
        assert set(release.to_frame(level)["status"]) == {status}
    release.to_frame().to_file(tmp_path / "plain.geojson", driver="GeoJSON")
    assert set(geopandas.read_file(tmp_path / "plain.geojson")["status"]) == {status}
    assert (status in repr(release)) == (status != PRIVATE)


@pytest.mark.parametrize(("entropy", "status"), [(Entropy.seeded(1), SIMULATION), (Entropy.system(), PRIVATE)], ids=["seeded", "system"])
def test_every_frame_of_trips_says_what_it_is_also_without_rows(entropy, status):
    release = TopDown().release(trips_of(500, 2), ApproxBudget(2, "1e-6"), entropy)
    frames = [release.level(level, spread=spread) for level in range(3) for spread in (False, True)]
    frames += [release.stage(stage) for stage in range(5)] + [release.inconsistencies()]
    for frame in frames:
        assert set(frame["status"]) == {status}
    empty = TopDown().release(trips_of(0, 2), ApproxBudget(2, "1e-6"), entropy).level(2)
    assert isinstance(empty, pd.DataFrame)
    assert "status" in empty.columns
