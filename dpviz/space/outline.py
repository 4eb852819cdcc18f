"""The public outline of an area, such as a city: polygons, and the box around them that may be declared as a domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from dpviz.errors import DomainError
from dpviz.space.borders import repaired_parts
from dpviz.space.domain import Domain, is_horizontal

DEGREES = "EPSG:4326"
_DECIMALS = 4  # of bounds in degrees, about ten metres; bounds in other units are whole numbers
_STEPS = 100  # an edge that is reprojected has corners at least every hundredth of the extent
POLYGONS = (3, 6)
MOST_CORNERS = 2**23
"""The most corners that polygons may have when they are reprojected, those included that long edges get before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outline:
    """Polygons that were declared in public. They are never derived from private records.

    Attributes:
        shapes: (n,) shapely polygons, at least one.
        crs: of their coordinates: anything that pyproj understands, stored as two-dimensional `CRS`.

    Raises:
        DomainError: there is no polygon, or another shape; a coordinate is not finite or out of range; the CRS is not one of maps.

    >>> square = Outline(shapes=np.array([shapely.box(4.81234, 45.71, 4.9, 45.80001)]), crs="EPSG:4326")
    >>> square.code, square.bounds_in("EPSG:4326")
    ('EPSG:4326', (4.8123, 45.71, 4.9, 45.8001))
    """

    shapes: NDArray[np.object_] = field(repr=False)
    crs: CRS

    def __post_init__(self) -> None:
        crs = CRS.from_user_input(self.crs)
        if not is_horizontal(crs):
            raise DomainError("The CRS of the polygons has no positions on a map: save them in EPSG:4326, for instance.")
        object.__setattr__(self, "crs", (crs.sub_crs_list[0] if crs.is_compound else crs).to_2d())
        shapes = shapely.force_2d(np.asarray(self.shapes, object))
        shapes = shapes[~(shapely.is_missing(shapes) | shapely.is_empty(shapes))]
        if len(shapes) and not np.isin(shapely.get_type_id(shapes), POLYGONS).all():
            raise DomainError(
                "The file has shapes that are no polygons: choose a file with the outline of the area alone, or drag a box on the map."
            )
        if not shapely.area(shapes).sum() > 0:
            raise DomainError("The file has no polygon: choose a file with the outline of the area, or drag a box on the map.")
        corners = shapely.get_coordinates(shapes)
        if not np.isfinite(corners).all():
            raise DomainError("The polygons have a coordinate that is not finite: save the file anew, or drag a box on the map.")
        if self.crs.is_geographic and (np.abs(corners) > [360.0, 90.0]).any():
            raise DomainError("A longitude or latitude of the polygons is out of range: is another CRS theirs, or are x and y swapped?")
        object.__setattr__(self, "shapes", shapes)

    @property
    def code(self) -> str:
        """The code of the CRS, such as "EPSG:2154"; that of longitude and latitude if the CRS has no code."""
        if self.crs.equals(CRS(DEGREES), ignore_axis_order=True):
            return DEGREES
        authority = self.crs.to_authority()
        return DEGREES if authority is None else ":".join(authority)

    def bounds_in(self, crs: str) -> tuple[float, float, float, float]:
        """Compute west, south, east and north of the smallest box that holds all polygons, rounded outward.

        Args:
            crs: of the box; degrees are rounded to four decimals, other units to whole numbers.

        Raises:
            DomainError: a part of the polygons has no coordinates in that CRS.
        """
        target = CRS.from_user_input(crs)
        corners = shapely.get_coordinates(_reproject(self.shapes, self.crs, target))
        scale = 10.0**_DECIMALS if target.is_geographic else 1.0
        (west, south), (east, north) = (corners.min(axis=0) * scale).tolist(), (corners.max(axis=0) * scale).tolist()
        return math.floor(west) / scale, math.floor(south) / scale, math.ceil(east) / scale, math.ceil(north) / scale

    def shapes_around(self, domain: Domain) -> NDArray[np.object_]:
        """Return the polygons in the CRS of a domain, without what lies far from the domain.

        Raises:
            DomainError: the domain is a plain plane, or a part of the polygons near it has no coordinates in its CRS.
        """
        if domain.crs is None:
            raise DomainError("A plain plane has no map for polygons in a CRS: give the domain their CRS, or leave the polygons out.")
        target = CRS(domain.crs)
        box = _box_around(domain, self.crs)
        near = self.shapes if box is None else _cut(self.shapes, box)
        return _reproject(near, self.crs, target) if len(near) else near

    @cached_property
    def in_degrees(self) -> NDArray[np.object_]:
        """(n,) the polygons in longitude and latitude.

        Raises:
            DomainError: a part of the polygons has no longitude and latitude.
        """
        return _reproject(self.shapes, self.crs, CRS(DEGREES))


def _box_around(domain: Domain, crs: CRS) -> shapely.Polygon | None:
    """Return a box in a CRS that holds a domain, with a margin; None if there is none."""
    try:
        bounds = Transformer.from_crs(domain.crs, crs, always_xy=True).transform_bounds(*domain.bounds, densify_pts=_STEPS)
    except ProjError:
        return None
    west, south, east, north = bounds
    if not (np.isfinite(bounds).all() and west < east and south < north):
        return None
    margin = max(east - west, north - south) / 10
    return shapely.box(west - margin, south - margin, east + margin, north + margin)


def _cut(shapes: NDArray[np.object_], box: shapely.Polygon) -> NDArray[np.object_]:
    """Cut off what is outside a box. Only polygons that reach out of it are repaired for that."""
    within = shapely.covers(box, shapely.box(*shapely.bounds(shapes).T))
    parts, _ = repaired_parts(shapes[~within & shapely.intersects(box, shapely.box(*shapely.bounds(shapes).T))])
    cut = shapely.intersection(parts, box)
    areas = np.isin(shapely.get_type_id(cut), POLYGONS) & ~shapely.is_empty(cut)
    return np.concatenate([shapes[within], cut[areas]])


def _reproject(shapes: NDArray[np.object_], source: CRS, target: CRS) -> NDArray[np.object_]:
    """Reproject polygons. Their edges get further corners before, as straight lines become curves."""
    if source.equals(target, ignore_axis_order=True):
        return shapes
    west, south, east, north = shapely.total_bounds(shapes)
    step = max(east - west, north - south) / _STEPS
    if shapely.get_num_coordinates(shapes).sum() + shapely.length(shapes).sum() / step > MOST_CORNERS:
        raise DomainError(
            "The polygons have too many or too long edges to be reprojected: simplify them, or save them in the domain's CRS."
        )
    fine = shapely.segmentize(shapes, step)
    try:
        transformer = Transformer.from_crs(source, target, always_xy=True)
        moved = shapely.transform(fine, lambda corners: np.stack(transformer.transform(*corners.T), axis=1))
    except ProjError:
        moved = np.zeros(0, object)
    if not len(moved) or not np.isfinite(shapely.get_coordinates(moved)).all():
        raise DomainError("The polygons cannot be placed on the map: is the CRS that of the file?")
    return np.asarray(moved, object)
