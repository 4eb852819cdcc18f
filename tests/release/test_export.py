"""A release is written whole or not at all, and never one that must not be published."""

import json

import numpy as np
import pytest

from dpviz.data.points import PointCounts
from dpviz.errors import RefusedError
from dpviz.mechanisms import ExactKdtree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.export import write_release
from dpviz.release.manifest import describe
from dpviz.release.publication import Publication
from dpviz.space.domain import Domain
from tests.flow_cases import trips_of

WORDS = Publication(name="Trips", curator="A. Curator", description="", region="", intended_use="", draws=1, truth_seen=False)


def points() -> PointCounts:
    x, y = np.random.default_rng(1).uniform(0, 8, (2, 200))
    return PointCounts.from_xy(x, y, domain=Domain(bounds=(0, 0, 8, 8), crs="EPSG:4326", order=4))


def released(entropy=None):
    return Quadtree(height=3).release(points(), PureBudget(1), entropy or Entropy.system())


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(lambda: released(Entropy.seeded(1)), id="simulation"),
        pytest.param(lambda: ExactKdtree().release(points(), PureBudget(1), Entropy.system()), id="reference"),
        pytest.param(lambda: TopDown().release(trips_of(50), ApproxBudget(1, "1e-6"), Entropy.seeded(1)), id="trips, simulation"),
    ],
)
def test_what_must_not_be_published_is_neither_described_nor_written(release, tmp_path):
    made = release()
    with pytest.raises(RefusedError):
        describe(made, WORDS)
    with pytest.raises(RefusedError):
        write_release(made, tmp_path / "out", describe(released(), WORDS))
    assert list(tmp_path.iterdir()) == []
