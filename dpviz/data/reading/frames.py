"""In which CRS the coordinates of a file are, and how they come into another."""

from __future__ import annotations

import numpy as np
from pyproj import CRS, Transformer

from dpviz.data.columns import Numbers, RawPoints
from dpviz.data.reading.safety import guarded
from dpviz.errors import InputError
from dpviz.space.domain import is_horizontal

_FAR = np.finfo(np.float64).max


def frame_of(kind: str, declared: CRS | None, crs: object, target: object) -> CRS | None:
    """The CRS of the file's coordinates; None if they are taken as they are, on a plain plane.

    Raises:
        InputError: nobody says it, two say different things, or it is not known.
    """
    if target is None:
        if crs is not None:
            raise InputError("The domain is a plain plane without a CRS: leave crs out, or give the domain one.")
        return None
    if crs is None:
        if declared is None:
            raise InputError(f"This {kind} file does not say its CRS, and it is never guessed: pass crs=..., such as crs='EPSG:4326'.")
        return on_a_map(declared)
    given = guarded("The CRS is not known; give an EPSG code such as 'EPSG:4326'.", lambda: CRS.from_user_input(crs))
    if declared is not None and not same_crs(given, declared):
        raise InputError("The file declares another CRS than crs=...; leave crs out, or correct the file.")
    return on_a_map(given)


def on_a_map(crs: CRS) -> CRS:
    """The same CRS, if it has places on a map."""
    if not is_horizontal(crs):
        raise InputError(
            "The CRS of the points has no place on a map (heights only, or geocentric); convert them to EPSG:4326, for instance."
        )
    return crs


def same_crs(one: CRS, other: CRS) -> bool:
    """Whether two CRS give a place the same x and y (longitude first in both)."""
    return one.equals(other, ignore_axis_order=True) or (one.to_epsg() is not None and one.to_epsg() == other.to_epsg())


def reprojected(raw: RawPoints, frame: CRS | None, crs: object) -> tuple[Numbers, Numbers]:
    """(n,) x and y in another CRS; beyond all bounds where there is no such place."""
    target = None if crs is None else CRS.from_user_input(crs)
    if frame is None or target is None or same_crs(frame, target):
        return raw.x, raw.y
    x, y = guarded(
        "The coordinates cannot be reprojected from the file's CRS to the domain's.",
        lambda: Transformer.from_crs(frame, target, always_xy=True).transform(raw.x, raw.y),
    )
    nowhere = np.isfinite(raw.x) & np.isfinite(raw.y) & ~(np.isfinite(x) & np.isfinite(y))
    return np.where(nowhere, _FAR, x), np.where(nowhere, _FAR, y)
