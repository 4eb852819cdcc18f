"""Partitions as an xarray Dataset: the same numbers, each at the middle of its partition."""

import sys

import numpy as np
import pytest
import shapely
import xarray

import dpviz as dv
from tests.release_cases import point_release, points_of

RELEASES = {
    "quadtree": lambda: (point_release(), 2),
    "plane": lambda: (point_release(crs=None), None),
    "uniform_grid": lambda: (dv.UniformGrid(side=5).release(points_of(400), dv.PureBudget(1), dv.Entropy.seeded(1)), None),
    "privelet": lambda: (dv.Privelet().release(points_of(400), dv.PureBudget(1), dv.Entropy.seeded(1)), None),
}


@pytest.mark.parametrize("made", RELEASES.values(), ids=RELEASES)
def test_each_partition_is_found_at_its_middle(made):
    release, level = made()
    grid, frame = release.to_xarray(level), release.to_frame(level)
    middles = (shapely.bounds(frame.geometry.to_numpy())[:, [side, side + 2]].mean(axis=1) for side in (0, 1))
    at = {side: xarray.DataArray(middle, dims="k") for side, middle in zip("xy", middles, strict=True)}
    for name in ("count", "count_noisy", "stddev", "ci_low", "ci_high"):
        np.testing.assert_array_equal(grid[name].sel(at, method="nearest"), frame[name])
    assert grid["count"].dims == ("y", "x")
    assert (np.diff(grid["x"]) > 0).all()
    assert (np.diff(grid["y"]) > 0).all()
    assert grid.attrs["crs"] == (release.domain.crs or "")
    assert grid.attrs["status"] == release.status
    assert grid.attrs["level"] == (release.height if level is None else level)


def test_partitions_that_form_no_grid_are_refused():
    for mechanism in (dv.Kdtree(height=4), dv.Quadtree(height=4, prune=30), dv.HilbertTree(height=4)):
        with pytest.raises(dv.DomainError, match="form no grid"):
            mechanism.release(points_of(400), dv.PureBudget(1), dv.Entropy.seeded(1)).to_xarray()


def test_without_xarray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(dv.SettingError, match=r'pip install "dpviz\[plot\]"'):
        point_release().to_xarray()
