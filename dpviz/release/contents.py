"""What a manifest says of a release beside its tables: enough to build the same object again."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from dpviz.errors import SettingError
from dpviz.privacy.consistency import Spread
from dpviz.privacy.wavelet import WaveletSpread
from dpviz.release.columns import columns_of
from dpviz.release.flow_release import FlowRelease
from dpviz.release.point_release import Release
from dpviz.space.regions import Regions
from dpviz.space.tree import Tree

Facts = dict[str, Any]

POINTS, TRIPS = "points", "trips"
INDEPENDENT, LEAST_SQUARES, WAVELET = "independent", "least squares", "wavelet"
NESTED, GRID, CURVE = "nested rectangles", "one grid", "stretches of a Hilbert curve"
_HALF = re.compile(r"[\ud800-\udfff]")


def contents_facts(release: Release | FlowRelease) -> Facts:
    """Mechanism, settings, public frame and how the tables are to be read.

    Raises:
        SettingError: a setting, or the name of a region, that cannot be written down.
    """
    about = {
        "mechanism": release.mechanism,
        "settings": {name: _written(name, value) for name, value in release.settings.items()},
        "approximate": release.approximate,
    }
    return about | (_points(release) if isinstance(release, Release) else _trips(release))


def settings_of(contents: Facts) -> dict[str, Any]:
    """The mechanism's settings: lists are tuples."""
    return {name: _read(value) for name, value in contents["settings"].items()}


def _points(release: Release) -> Facts:
    domain = release.domain
    return {
        "kind": POINTS,
        "columns": columns_of(release),
        "domain": {"bounds": list(domain.bounds), "crs": domain.crs, "order": domain.order},
        "height": release.height,
        "inside": release.inside,
        "spread": _spread(release.spread),
        "tree": _tree(release.tree),
    }


def _spread(spread: Spread | WaveletSpread | None) -> Facts:
    if spread is None:
        return {"errors": INDEPENDENT}
    if isinstance(spread, WaveletSpread):
        return {"errors": WAVELET, "order": spread.order, "variance": spread.variance, "width": spread.width}
    return {"errors": LEAST_SQUARES, "root_variance": spread.root}


def _tree(tree: Tree) -> Facts:
    shape = CURVE if tree.curve is not None else GRID if tree.lines is not None else NESTED
    return {"shape": shape, "nodes": len(tree), "leaves": len(tree.leaves), "curve_order": None if tree.curve is None else tree.curve.order}


def _trips(release: FlowRelease) -> Facts:
    tree = release.tree
    same = tree.destinations is tree.origins
    return {
        "kind": TRIPS,
        "columns": columns_of(release),
        "refined_first": tree.first,
        "every_pair": release.every_pair,
        "across": release.across is not None,
        "origins": _regions(tree.origins),
        "destinations": None if same else _regions(tree.destinations),
        "stages": [
            {
                "stage": stage,
                "between": tree.title(stage),
                "pairs": len(at.count),
                "measured": int(at.measured),
                "variance": float(at.variance) if math.isfinite(at.variance) else None,
            }
            for stage, at in enumerate(release.stages)
        ],
    }


def _regions(regions: Regions) -> list[Facts]:
    for texts in (*regions.ids, *regions.names, np.array(regions.levels, object)):
        if _HALF.search("\n".join(texts)):
            raise SettingError("An id or name of a region holds half a character (a lone surrogate), which no file can hold; correct it.")
    shapes = zip(regions.levels, regions.ids, regions.geometry, strict=True)
    return [{"level": name, "regions": len(ids), "shapes": shape is not None} for name, ids, shape in shapes]


def _written(name: str, value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_written(name, part) for part in value]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SettingError(f"The mechanism's setting {name!r} cannot be written: use texts, finite numbers, True or False, and tuples of them.")


def _read(value: Any) -> Any:
    return tuple(_read(part) for part in value) if isinstance(value, list) else value
