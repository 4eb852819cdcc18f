"""The public rectangle in which points are counted, and the lattice that divides it into cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS, Transformer, network
from pyproj.exceptions import CRSError, ProjError

from dpviz.cards import HtmlCard
from dpviz.errors import DomainError
from dpviz.space.mask import CellMask
from dpviz.space.rectangle import Bounds, bounds_of, crs_of

# PROJ must not download parts of shift grids, because its requests would reveal where the private records are.
network.set_network_enabled(active=False)  # type: ignore[attr-defined]
EQUAL_AREA = "+proj=cea +ellps=WGS84 +units=m"
FINEST_ORDER = 24
_FARTHEST = 1e300  # in cells; coordinates are clipped to this distance, so that widths stay finite
_OF_BOUNDS = "of the bounds"  # stands for a CRS that is left out
GEOGRAPHIC_LIMITS = (-180.0, -90.0, 180.0, 90.0)


@dataclass(frozen=True, kw_only=True)
class Domain(HtmlCard):
    """A rectangle declared in public, divided into ``2**order`` x ``2**order`` lattice cells.

    A domain cannot be made from data, because the bounding box of private points is itself private.

    Attributes:
        bounds: west, south, east, north in the units of `crs` (degrees for a geographic CRS). May be given as a rectangle: a shapely
            polygon, or a GeoSeries or GeoDataFrame with one, in `crs`.
        crs: the coordinate reference system: anything that pyproj understands, stored as text; None for a plane without a map. May be
            left out where the bounds are a GeoSeries or GeoDataFrame, which states its own.
        order: the lattice has ``2**order`` columns and rows; 1 to 24.
        mask: the cells in which records can be; records in other cells count as outside the domain. A finer mask becomes one of blocks, of
            which those with an open part are open. None if records can be everywhere, and also if all cells of the mask are open. See
            `mask_outside`.

    Raises:
        DomainError: the bounds are not finite, enclose no area or are mostly off the globe, or are a shape other than a rectangle or
            of another CRS; the CRS is unknown or not two-dimensional; the order is out of range; or cells are finer than
            floating-point coordinates.

    >>> domain = Domain(bounds=(0, 0, 8, 4), crs=None, order=2)
    >>> domain.side, domain.cell_size
    (4, (2.0, 1.0))
    """

    bounds: tuple[float, float, float, float]
    crs: str | None = _OF_BOUNDS
    order: int = 10
    mask: CellMask | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "crs", _check_crs(self.crs, crs_of(self.bounds)))
        object.__setattr__(self, "bounds", _check_bounds(bounds_of(self.bounds), self.is_geographic))
        if isinstance(self.order, bool) or not isinstance(self.order, int | np.integer) or not 1 <= self.order <= FINEST_ORDER:
            raise DomainError(f"The lattice's order must be a whole number from 1 to {FINEST_ORDER}.")
        object.__setattr__(self, "order", int(self.order))
        if self.mask is not None:
            if not isinstance(self.mask, CellMask):
                raise DomainError("The mask of a domain must be a CellMask: see mask_outside.")
            object.__setattr__(self, "mask", self.mask.coarsened(self.order))
        if self.crs is not None and _share_on_globe(self.crs, self.bounds) < 1 / 4:
            raise DomainError("Most of the domain is off the globe, where the CRS has no longitude and latitude; choose narrower bounds.")
        west, south, east, north = self.bounds
        width, height = self.cell_size
        if min(width / math.ulp(max(abs(west), abs(east))), height / math.ulp(max(abs(south), abs(north)))) < 16:
            raise DomainError("The cells are finer than floating-point coordinates; choose a lower order or wider bounds.")

    @property
    def side(self) -> int:
        """The number of columns, and of rows, of the lattice."""
        return 1 << self.order

    @property
    def cell_size(self) -> tuple[float, float]:
        """Width and height of one lattice cell, in the units of the CRS."""
        west, south, east, north = self.bounds
        return (east - west) / self.side, (north - south) / self.side

    @property
    def is_geographic(self) -> bool:
        """Whether coordinates are longitude and latitude in degrees."""
        return self.crs is not None and _is_geographic(self.crs)

    def open_blocks(self, zoom: int) -> NDArray[np.bool_]:
        """Return (2**zoom, 2**zoom) whether records can be in each equal block, [row, column], row 0 in the south."""
        return np.ones((1 << zoom, 1 << zoom), np.bool_) if self.mask is None else self.mask.blocks(zoom)

    def count_open_blocks(self, zoom: int) -> int:
        """Count the 2**zoom x 2**zoom equal blocks in which records can be."""
        return 4**zoom if self.mask is None else int(self.mask.blocks(zoom).sum())

    @property
    def share_open(self) -> float:
        """The share of the cells in which records can be, above 0; 1 without a mask."""
        return 1.0 if self.mask is None else self.mask.cells_open / self.mask.open.size

    def coordinates(self, lattice: ArrayLike) -> NDArray[np.float64]:
        """Compute coordinates of lattice rectangles.

        Args:
            lattice: (..., 4) west, south, east, north as lattice lines, 0 to `side`.

        Returns:
            (..., 4) west, south, east, north in the units of the CRS; the outermost lines are exactly `bounds`.

        >>> Domain(bounds=(0, 0, 8, 4), crs=None, order=2).coordinates([0, 0, 4, 1]).tolist()
        [0.0, 0.0, 8.0, 1.0]
        """
        share = np.asarray(lattice, np.float64) / self.side
        low, high = np.array(self.bounds[:2] * 2), np.array(self.bounds[2:] * 2)
        return np.asarray(low * (1 - share) + high * share)

    def lattice(self, boxes: ArrayLike) -> NDArray[np.float64]:
        """Convert boxes to lattice units, and clip them to the domain.

        Args:
            boxes: (q, 4) west, south, east, north in the units of the CRS.

        Returns:
            (q, 4) the boxes in columns and rows, 0.0 to `side`. An edge within a billionth of a cell of a lattice line is moved onto it.

        Raises:
            DomainError: the shape is not (q, 4), a bound is not finite, or west > east or south > north.
        """
        return np.asarray(np.clip(self._lattice_lines(boxes), 0.0, self.side))

    def coverage(self, boxes: ArrayLike) -> NDArray[np.float64]:
        """Compute the share of each box that is inside the domain.

        Args:
            boxes: (q, 4) west, south, east, north in the units of the CRS.

        Returns:
            (q,) 0 to 1: the share of a box's area, or of its length if the box is a line; 1 or 0 if it is a point. Points on the
            domain's edge are inside. As in `lattice`, an edge within a billionth of a cell of a lattice line is moved onto it.

        Raises:
            DomainError: as for `lattice`.
        """
        lines = self._lattice_lines(boxes)
        low, high = lines[:, :2], lines[:, 2:]
        inside = np.maximum(np.minimum(high, self.side) - np.maximum(low, 0.0), 0.0)
        point_inside = ((low >= 0) & (low <= self.side)).astype(np.float64)
        return np.asarray(np.divide(inside, high - low, out=point_inside, where=high > low).prod(axis=1))

    def _lattice_lines(self, boxes: ArrayLike) -> NDArray[np.float64]:
        """Convert (q, 4) boxes to lattice units, not clipped to the domain; edges near a lattice line are moved onto it."""
        numbers = _as_numbers(boxes)
        if numbers is not None and numbers.shape == (4,):
            numbers = numbers[np.newaxis]
        if numbers is None or numbers.ndim != 2 or numbers.shape[1] != 4:
            raise DomainError(
                "Boxes must be numbers in an array of shape (q, 4): west, south, east, north. For polygons there is answer_areas."
            )
        if not np.isfinite(numbers).all():
            raise DomainError("Boxes must have finite bounds.")
        if (numbers[:, :2] > numbers[:, 2:]).any():
            raise DomainError("A box has west > east or south > north.")
        low, high = np.array(self.bounds[:2] * 2), np.array(self.bounds[2:] * 2)
        with np.errstate(over="ignore"):
            exact = (numbers - low) * (self.side / (high - low))
        exact = np.clip(exact, -_FARTHEST, _FARTHEST)
        nearest_line = np.rint(exact)
        on_line = np.abs(exact - nearest_line) <= 1e-9 * np.maximum(1.0, np.abs(nearest_line))
        return np.asarray(np.where(on_line, nearest_line, exact))

    def areas_km2(self, lattice: ArrayLike) -> NDArray[np.float64]:
        """Compute areas of lattice rectangles on the ellipsoid.

        Args:
            lattice: (n, 4) west, south, east, north as lattice lines.

        Returns:
            (n,) areas in km2, by an equal-area projection of the outline; in squared units of the plane if `crs` is None or an
            engineering CRS (a local plane). NaN where the outline leaves the globe, as at the corners of some world maps.
        """
        boxes = self.coordinates(lattice)
        west, south, east, north = boxes.T
        if self.crs is None or CRS(self.crs).is_engineering:
            return np.asarray((east - west) * (north - south))
        if self.is_geographic:
            x, y = self._to_equal_area.transform(np.stack([west, east]), np.stack([south, north]))
            return np.asarray((x[1] - x[0]) * (y[1] - y[0]) / 1e6)
        x, y = self._to_equal_area.transform(*_outline(boxes))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs((x * np.roll(y, -1, 0) - np.roll(x, -1, 0) * y).sum(0)) / 2e6)

    def boxes(self, lattice: ArrayLike) -> NDArray[np.object_]:
        """Convert lattice rectangles to polygons.

        Args:
            lattice: (n, 4) west, south, east, north as lattice lines.

        Returns:
            (n,) shapely polygons in the CRS.
        """
        return np.asarray(shapely.box(*self.coordinates(lattice).T))

    @cached_property
    def _to_equal_area(self) -> Transformer:
        target = EQUAL_AREA if self.is_geographic else _choose_equal_area(self.crs, self.bounds)
        return Transformer.from_crs(self.crs, target, always_xy=True)


@lru_cache(maxsize=256)
def area_of_bounds(bounds: tuple[float, float, float, float], crs: str) -> float:
    """Compute the area within bounds, see `Domain.areas_km2`, once for all threads: each would prepare the projection again.

    Args:
        bounds: west, south, east, north in the units of the CRS.
        crs: the CRS, as a domain stores it.

    >>> round(area_of_bounds((4.6, 45.5, 5.1, 45.9), "EPSG:4326"))
    1731
    """
    return float(Domain(bounds=bounds, crs=crs, order=1).areas_km2([[0, 0, 2, 2]])[0])


def as_domain(domain: Domain | Bounds, crs: object) -> Domain:
    """Return a domain as it is, or the one with these bounds in a CRS.

    Args:
        domain: a domain; or its bounds, as four numbers or as a rectangle.
        crs: the CRS of bounds that state none; anything that pyproj understands.

    Raises:
        DomainError: bounds without a CRS, or neither a domain nor four numbers; or as for `Domain`.

    >>> as_domain((4, 52, 5, 53), "EPSG:4326").crs
    'EPSG:4326'
    """
    if isinstance(domain, Domain):
        return domain
    crs = crs_of(domain) or crs
    if crs is None:
        raise DomainError(
            'Bounds need a CRS: pass a domain, dv.Domain(bounds=..., crs="EPSG:4326"), or crs="EPSG:4326" beside them where files are read.'
        )
    return Domain(bounds=domain, crs=crs)  # type: ignore[arg-type]


def refuse_degrees(domain: Domain) -> None:
    """Refuse bounds that look like degrees if the CRS is in metres or feet: the domain would be only a few metres wide.

    This needs only bounds and CRS, which are public: it is checked before any file is read. A projection without an area of use,
    such as a custom one, is not checked, because its origin may be anywhere.

    Raises:
        DomainError: bounds and CRS do not fit together.
    """
    crs = None if domain.crs is None else CRS(domain.crs)
    west, south, east, north = domain.bounds
    if crs is None or not crs.is_projected or crs.area_of_use is None or max(-west, east) > 180 or max(-south, north) > 90:
        return
    raise DomainError(
        f"The domain's bounds look like degrees, but the unit of its CRS is {crs.axis_info[0].unit_name}: give the bounds in that unit,"
        " or a CRS in degrees such as 'EPSG:4326', to which points are reprojected."
    )


def _choose_equal_area(crs: str | None, bounds: tuple[float, float, float, float]) -> str:
    """Choose an equal-area projection that does not cut the domain: centred on the pole in it, or else on its middle longitude."""
    west, south, east, north = bounds
    degrees = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    x, y = degrees.transform([0.0, 0.0], [-90.0, 90.0], direction="INVERSE")
    inside = [west <= x[pole] <= east and south <= y[pole] <= north for pole in (0, 1)]
    if inside[0] != inside[1]:
        return f"+proj=laea +lat_0={90 if inside[1] else -90} +ellps=WGS84 +units=m"
    middle, _ = degrees.transform((west + east) / 2, (south + north) / 2)
    return f"{EQUAL_AREA} +lon_0={middle if math.isfinite(middle) else 0}"


def _outline(boxes: NDArray[np.float64], steps: int = 16) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute (4 steps, n) x and y of the corners and of points along the edges of (n, 4) boxes, counter-clockwise."""
    share = np.arange(steps)[:, None] / steps
    west, south, east, north = boxes.T
    across, up = west + share * (east - west), south + share * (north - south)
    x = np.concatenate([across, east + 0 * up, west + east - across, west + 0 * up])
    y = np.concatenate([south + 0 * across, up, north + 0 * across, south + north - up])
    return x, y


def is_horizontal(crs: CRS) -> bool:
    """Return whether the first two coordinates of a CRS are horizontal, not heights or metres from the centre of the Earth."""
    parts = crs.sub_crs_list
    return is_horizontal(parts[0]) if parts else crs.is_geographic or crs.is_projected or (crs.is_engineering and len(crs.axis_info) > 1)


@lru_cache(maxsize=256)
def _share_on_globe(crs: str, bounds: tuple[float, float, float, float], steps: int = 16) -> float:
    """Estimate the share of the domain with longitude and latitude, on a grid of points; 1 for the CRS of a plane or another planet."""
    west, south, east, north = bounds
    share = (np.arange(steps) + 0.5) / steps
    x, y = np.meshgrid(west + share * (east - west), south + share * (north - south))
    try:
        degrees = Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform(x, y)
    except ProjError:
        return 1.0
    return float(np.isfinite(degrees).all(axis=0).mean())


@lru_cache(maxsize=256)
def _is_geographic(crs: str) -> bool:
    return bool(CRS(crs).is_geographic)


def _check_crs(crs: object, stated: CRS | None) -> str | None:
    """Return what the CRS of a domain is stored as; if it is left out, the one that the bounds state. Both must be the same.

    Names are looked up once: in each new thread the first look-up opens the table of all of them.
    """
    if isinstance(crs, str) and crs == _OF_BOUNDS:
        if stated is None:
            raise DomainError(
                "Bounds need a CRS, which is never guessed: crs='EPSG:4326', for instance, or crs=None for a plane without a map."
            )
        crs = stated
    text = None if crs is None else _text_of_name(crs) if isinstance(crs, str) else _text_of(crs)
    if stated is not None and (text is None or not stated.equals(CRS(text), ignore_axis_order=True)):
        raise DomainError("The rectangle states another CRS than crs: pass its own, crs=shape.crs, or reproject it with shape.to_crs(...).")
    return text


def _text_of(crs: object) -> str:
    try:
        parsed = CRS.from_user_input(crs)
    except CRSError:
        raise DomainError("The CRS is not known; give an EPSG code such as 'EPSG:4326', or None for a plane without a map.") from None
    if not is_horizontal(parsed) or len(parsed.axis_info) != 2:
        raise DomainError(
            "A domain's CRS must have two axes on a map, without heights: give its horizontal part,"
            " such as 'EPSG:4326' or a UTM zone, or None for a plane without a map."
        )
    return str(parsed.to_string())


_text_of_name = lru_cache(maxsize=256)(_text_of)


def _as_numbers(values: ArrayLike) -> NDArray[np.float64] | None:
    """Convert values to floats; None if they are not numbers, or not a rectangular array."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _check_bounds(bounds: object, geographic: bool) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = (float(value) for value in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise DomainError("Bounds must be four numbers: west, south, east, north.") from None
    if not all(map(math.isfinite, (west, south, east, north))):
        raise DomainError("Bounds must be finite numbers: west, south, east, north.")
    if not (west < east and south < north):
        crossing = (
            " A box across 180 degrees needs a CRS whose map is not cut there, such as EPSG:3832 for the Pacific, and bounds in metres."
            if geographic and west > east and south < north
            else ""
        )
        raise DomainError(f"A domain needs an area: west < east and south < north.{crossing}")
    if not (math.isfinite(east - west) and math.isfinite(north - south) and (east - west) * (north - south) > 0):
        raise DomainError("Bounds are too far apart or too close together for floating-point numbers.")
    low, high = GEOGRAPHIC_LIMITS[:2], GEOGRAPHIC_LIMITS[2:]
    if geographic and (west < low[0] or south < low[1] or east > high[0] or north > high[1]):
        raise DomainError("Degrees must lie within -180 to 180 and -90 to 90; are x and y swapped, or is the CRS another one?")
    return west, south, east, north
