"""Named areas in nested levels (country > state > county), in which records and between which trips are counted."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import geopandas
import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray
from pyproj import CRS
from pyproj.exceptions import ProjError

from dpviz.arrays import Places, Texts, slices
from dpviz.errors import DomainError
from dpviz.space.borders import edges_of, repaired_parts
from dpviz.space.denominators import check_denominator
from dpviz.space.domain import Domain, is_horizontal
from dpviz.space.nested import Nested
from dpviz.space.rectangle import Bounds
from dpviz.space.region_builders import H3_CRS, Grid, H3Cells, h3_outlines, list_polygons, nest_h3_cells, nest_squares
from dpviz.space.region_tables import fields_from_columns, fields_from_parents, fields_from_prefixes

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_GEOMETRY = "The regions have no geometry, so there is no place on the map for them."
DEGREES = "EPSG:4326"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Regions(Nested):
    """Regions in nested levels under one root. PUBLIC: declared in public, never derived from private data.

    Level 0 is the root alone; levels 1 to g are named, coarsest first. The regions of a level are in tree order: the children of a
    region are consecutive in the level below. Functions refer to a region by its index in its level.

    Attributes:
        levels: g names, coarsest first.
        ids: g arrays, (n_k,) texts, unique in their level.
        parent: g arrays, (n_k,) index of each region's parent in the level above; zeros for level 1.
        names: g arrays, (n_k,) readable names.
        geometry: g GeoSeries in one CRS, each of polygons only or of points only; None for a level without its own shapes. Polygons
            that cross themselves are repaired.
        grid: cells by which a point finds its leaf: the squares of a domain's lattice, or H3 cells, which are the leaves; None where the
            leaves' polygons decide. The shapes of coarser H3 cells are approximate, since H3 cells do not nest in space.
        denominator: (leaves,) public numbers of at least 0 by the leaves' ids, such as residents, by which counts are divided to rates; its
            name says what they are. A coarser region has the sum of its leaves. None if there is none.

    Raises:
        DomainError: arrays have different lengths; ids or levels are empty or not unique; regions are not in tree order or have no
            children; shapes are missing, mixed, without area or off the map; the CRS is missing or differs between levels; the grid has
            other cells than the leaves; the denominator has no name, or not one number of at least 0 per leaf; or there are more than 16
            levels or 2**24 leaves.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"state": ["NY", "NY", "VT"], "county": ["36001", "36003", "50001"]})
    >>> regions = Regions.from_table(table, levels=["state", "county"])
    >>> regions.size(1), regions.ancestors(1).tolist()
    (2, [0, 0, 1])
    """

    noun: ClassVar[str] = "region"

    geometry: tuple[geopandas.GeoSeries | None, ...]
    grid: Grid | None = None
    denominator: pd.Series[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.geometry) != self.depth:
            raise DomainError("ids, parent, names and geometry need one entry per level.")
        for name, ids, shape in zip(self.levels, self.ids, self.geometry, strict=True):
            if shape is not None and len(shape) != len(ids):
                raise DomainError(f"Level {name!r} needs one shape per region.")
        shapes = [None if shape is None else check_shapes(shape, name) for shape, name in zip(self.geometry, self.levels, strict=True)]
        object.__setattr__(self, "geometry", tuple(shapes))
        systems = [shape.crs for shape in shapes if shape is not None]
        if any(system != systems[0] for system in systems):
            raise DomainError("The levels' geometries have different CRS; reproject them to one.")

        is_lattice = isinstance(self.grid, Domain) and len(self.ids[-1]) == self.grid.side**2
        if self.grid is not None and not (is_lattice or self.are_h3_cells(self.depth)):
            raise DomainError("The leaves of regions on a grid must be its cells: see Regions.h3 and Regions.squares.")
        if self.denominator is not None:
            object.__setattr__(self, "denominator", check_denominator(self.denominator, self.ids[-1]))

    def are_h3_cells(self, level: int) -> bool:
        """Return whether the regions of a level, 1 to g, are H3 cells, whose ids are their indexes."""
        return isinstance(self.grid, H3Cells) and all(len(text) == 15 and set(text) <= _HEX_DIGITS for text in self.ids[level - 1])

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same levels, regions in the same order, and grid; names, shapes and denominator are not compared."""
        return self is other or (isinstance(other, Regions) and self.grid == other.grid and self.has_same_levels(other))

    __hash__ = Nested.__hash__

    @classmethod
    def from_table(
        cls, table: pd.DataFrame, *, levels: Sequence[str], names: Mapping[str, str] | None = None, denominator: str | None = None
    ) -> Regions:
        """Make regions from a table with one row per leaf region and a column of ids per level.

        Args:
            table: ids are texts, kept as they are ("06037"), or whole numbers, which become texts. The geometry of a GeoDataFrame,
                polygons or points, belongs to the leaves.
            levels: the columns of ids, coarsest first.
            names: level -> column with readable names; for levels without such a column, ids are the names.
            denominator: the column of a public number of each leaf, such as its residents, by which counts are divided to rates.

        Raises:
            DomainError: there are no rows; a column or id is missing; ids are neither texts nor whole numbers; a leaf is in two rows;
                an id has two parents; a denominator is missing, no number or negative; or `Regions` refuses the geometry.

        >>> table = pd.DataFrame({"tract": ["a", "b"], "residents": [1200, 0]})
        >>> Regions.from_table(table, levels=["tract"], denominator="residents").denominator.tolist()
        [1200.0, 0.0]
        """
        return cls(**fields_from_columns(table, levels, dict(names or {}), denominator))

    @classmethod
    def from_parents(cls, table: pd.DataFrame, *, denominator: str | None = None) -> Regions:
        """Make regions from a table with one row per region of any level: region_id, parent_id, level and, optionally, name.

        A parent is always a region of the level above, so the same id may be used on several levels. The coarsest regions have no
        parent. If there is only one of them, it is the root (level 0), and the levels below it are levels 1 to g.

        Args:
            table: its column `level` has whole numbers from 0 or 1, coarsest first (the levels are then called "level 1" to
                "level g"), or the names of the levels. Each row of a GeoDataFrame has the geometry of its region; in each level
                either all regions have one or none.
            denominator: as for `from_table`; only the numbers of leaves are read.

        Raises:
            DomainError: a column, id or level is missing; an id is twice on a level; a parent is unknown, the region itself, or not
                exactly one level up; there is a cycle, a level without regions, or a branch that ends before the last level; or the
                order of level names does not follow from the parents.

        >>> table = pd.DataFrame(
        ...     {
        ...         "region_id": ["36", "50", "36001", "36003", "50001"],
        ...         "parent_id": [None, None, "36", "36", "50"],
        ...         "level": ["state", "state", "county", "county", "county"],
        ...     }
        ... )
        >>> Regions.from_parents(table)
        Regions(2 state, 3 county)
        """
        return cls(**fields_from_parents(table, denominator))

    @classmethod
    def from_prefixes(cls, ids: Sequence[str] | Texts, *, lengths: Sequence[int], levels: Sequence[str]) -> Regions:
        """Make nested regions from the first characters of ids, as Census codes are built.

        Args:
            ids: texts, a public list of codes; duplicates are allowed.
            lengths: the number of characters that identify a region of each level, coarsest first: 2, 5, 11, 12 and 15 for state,
                county, tract, block group and block. Longer ids are cut to the last length; the distinct results are the leaves.
            levels: one name per length.

        Raises:
            DomainError: there are no ids; an id is missing, not a text, or shorter than the last length; or the lengths do not grow.

        >>> Regions.from_prefixes(["060371011101003", "360610001001000"], lengths=[2, 5], levels=["state", "county"]).ids[1].tolist()
        ['06037', '36061']
        """
        return cls(**fields_from_prefixes(ids, lengths, levels))

    @classmethod
    def from_polygons(cls, polygons: Any, *, ids: Sequence[str] | None = None, level: str = "region") -> Regions:
        """Make regions of one level from a flat list of polygons.

        Args:
            polygons: GeoSeries or GeoDataFrame of n polygons in a CRS.
            ids: (n,) texts; "1", "2", ... with as many digits as the last one if None.
            level: name of the level.

        Raises:
            DomainError: no polygons, another number of ids; or as for `from_table`.

        >>> import geopandas, shapely
        >>> squares = geopandas.GeoSeries([shapely.box(x, 0, x + 1, 1) for x in range(3)], crs="EPSG:3857")
        >>> Regions.from_polygons(squares).ids[0].tolist()
        ['1', '2', '3']
        """
        return cls.from_table(list_polygons(polygons, ids, level), levels=[level])

    @classmethod
    def h3(cls, area: Any, *, resolutions: Sequence[int] = (5, 7, 9)) -> Regions:
        """Make regions of the H3 cells that touch an area, and of their ancestors. Needs the package h3.

        Points are assigned to cells of the finest resolution; coarser counts are sums by index. H3 cells do not nest in space, so that
        the shapes of coarser levels are approximate.

        Args:
            area: declared in public: bounds west, south, east, north in degrees; a polygon in degrees; or a GeoSeries or GeoDataFrame of
                polygons in any CRS.
            resolutions: of the levels, coarsest first; 0 to 15.

        Raises:
            DomainError: the area is no polygon, off the globe, or crosses the 180th meridian; resolutions do not grow; there are more
                than 2**21 cells; or the package h3 is missing.

        >>> Regions.h3((-74.02, 40.7, -74.0, 40.72), resolutions=(5, 7, 8)).levels
        ('resolution 5', 'resolution 7', 'resolution 8')
        """
        table, levels, cells = nest_h3_cells(area, resolutions)
        regions = replace(cls.from_table(table, levels=levels), grid=cells)
        coarser = (geopandas.GeoSeries(h3_outlines(ids), crs=H3_CRS) for ids in regions.ids[:-1])
        return replace(regions, geometry=(*coarser, regions.geometry[-1]))

    @classmethod
    def squares(cls, domain: Domain | Bounds, *, zooms: Sequence[int]) -> Regions:
        """Make regions of the squares of a domain's lattice, nested by zoom. A point on a common border is in the square east or north.

        Args:
            domain: the public domain; or a GeoSeries or GeoDataFrame that is its rectangle.
            zooms: of the levels, coarsest first: a level has 2**zoom x 2**zoom squares; from 1 to the domain's order, at most 10.

        Raises:
            DomainError: zooms that are out of range or do not grow, or bounds without a CRS.

        >>> Regions.squares(Domain(bounds=(0, 0, 16, 16), crs=None, order=4), zooms=(1, 3))
        Regions(4 zoom 1, 64 zoom 3)
        """
        table, levels, lattice = nest_squares(domain, zooms)
        return replace(cls.from_table(table, levels=levels), grid=lattice)

    def grouped(self, lengths: Sequence[int]) -> Regions:
        """Make regions with additional coarser levels, whose ids are the first characters of the coarsest ids.

        H3 cells stay cells that find their points; squares do if the new levels leave their order as it is.

        Args:
            lengths: the number of characters that identify a region of each new level, coarsest first: 2 makes states from county
                codes.

        Raises:
            DomainError: as for `from_prefixes`; or a length is not smaller than that of the shortest id of the coarsest level.

        >>> counties = Regions.from_table(pd.DataFrame({"county": ["36001", "36003", "50001"]}), levels=["county"])
        >>> counties.grouped([2]).levels, counties.grouped([2]).ids[0].tolist()
        (('first 2 characters', 'county'), ['36', '50'])
        """
        new_levels = [f"first {length} characters" for length in lengths]
        coarsest = self.ids_of(1)
        coarser = Regions.from_prefixes(coarsest, lengths=lengths, levels=new_levels)
        if max(lengths) >= min(map(len, coarsest)):
            raise DomainError(f"A prefix must be shorter than the shortest id, which has {min(map(len, coarsest))} characters.")
        index = coarser.find([text[: lengths[-1]] for text in coarsest], coarser.depth)
        table = {name: coarser.ids_of(level)[coarser.ancestors(level)[index]] for level, name in enumerate(new_levels, start=1)}
        table = {name: ids[self.ancestors(1)] for name, ids in table.items()}
        table |= {name: self.ids_of(level)[self.ancestors(level)] for level, name in enumerate(self.levels, start=1)}
        nested = Regions.from_table(pd.DataFrame(table), levels=[*new_levels, *self.levels])
        orders = [self.find(nested.ids_of(len(new_levels) + level), level) for level in range(1, self.depth + 1)]
        names = (values[order] for values, order in zip(self.names, orders, strict=True))
        shapes = (
            None if values is None else values.iloc[order].reset_index(drop=True)
            for values, order in zip(self.geometry, orders, strict=True)
        )
        geometry = ((None,) * len(new_levels)) + tuple(shapes)
        keeps_order = bool((orders[-1] == np.arange(len(orders[-1]))).all())
        grid = self.grid if keeps_order or isinstance(self.grid, H3Cells) else None  # squares are numbered by their place on the lattice
        labels = (*nested.names[: len(new_levels)], *names)
        return replace(nested, names=labels, geometry=geometry, grid=grid, denominator=self.denominator)

    @property
    def crs(self) -> CRS | None:
        """The CRS of the shapes; None if there are no shapes."""
        return next((shape.crs for shape in self.geometry if shape is not None), None)

    @cached_property
    def overlaps(self) -> Places:
        """(k, 2) indices of leaves whose polygons overlap by more than 0.1 % of the smaller one; the first ones, if they are many.

        Narrower slivers come from rounding.
        """
        shapes = self.geometry[-1]
        if shapes is None or not are_areas(shapes) or self.grid is not None:
            return np.zeros((0, 2), np.int32)
        return find_overlaps(shapes.to_numpy())

    def outlines(self, level: int) -> geopandas.GeoSeries | None:
        """Return the polygons of a level's regions.

        A level without polygons of its own gets unions of the polygons of the nearest finer level that has some.

        Args:
            level: 0 to g.

        Returns:
            (n_level,) polygons in the CRS of the geometry; None if neither the level nor a finer one has polygons.
        """
        cache: dict[int, geopandas.GeoSeries | None] = vars(self).setdefault("_outlines", {})
        if level not in cache:
            outlines = None if level == 0 else self.geometry[level - 1]
            if outlines is None or not are_areas(outlines):
                finer = self.outlines(level + 1) if level < self.depth else None
                outlines = None if finer is None else dissolve(finer, self.parent[level], self.size(level))
            cache[level] = outlines
        return cache[level]

    def centres(self, level: int) -> NDArray[np.float64] | None:
        """Find a point for each region of a level, at which a map shows the region.

        For a polygon, it is a point inside it; for a point, the point itself. A region without a shape has a point inside its outline
        (see `outlines`) or, above points, the mean of its children's points.

        Args:
            level: 0 to g.

        Returns:
            (n_level, 2) longitude and latitude; None if there is no geometry.

        Raises:
            DomainError: a point has no longitude and latitude.
        """
        cache: dict[int, NDArray[np.float64] | None] = vars(self).setdefault("_centres", {})
        if level not in cache:
            cache[level] = self._find_centres(level)
        return cache[level]

    def _find_centres(self, level: int) -> NDArray[np.float64] | None:
        shape = None if level == 0 else self.geometry[level - 1]
        if shape is None:
            shape = self.outlines(level)
        if shape is not None:
            return degrees_inside(shape)
        finer = self.centres(level + 1) if level < self.depth else None
        if finer is None:
            return None
        parent, size = self.parent[level], self.size(level)
        child_count = np.bincount(parent, minlength=size)
        return np.stack([np.bincount(parent, finer[:, axis], size) / child_count for axis in (0, 1)], axis=1)


_DEGREES = "EPSG:4326"
_HEX_DIGITS = set("0123456789abcdef")
_POINT, _AREAS = 0, (3, 6)
_FARTHEST_LATITUDE, _FARTHEST_LONGITUDE = 90.000001, 360.000001
_SAME_AREA = 1e-9
_MOST_OVERLAP = 1e-3
ENOUGH_OVERLAPS = 500
"""With so many pairs that overlap, the search for more ends."""
_PAIRS_AT_ONCE, _PAIRS_CUT = 2**22, 1_000
_MOST_PAIRS = 2**22
_MOST_EDGE_PAIRS, _USUAL_PAIRS = 2**20, 8
_TANGLED = (
    "The regions' polygons lie across each other so often that it cannot be checked in minutes whether they overlap: simplify them, or"
    " correct them, so that a place is in one region at most."
)


def drawable_levels(*hierarchies: Regions) -> dict[int, int]:
    """Count the regions of each level that has a place on a map: all of its regions have geometry.

    Args:
        hierarchies: with equally many levels.

    Returns:
        The most regions that a hierarchy has there, by the level's number, 1 for the coarsest.
    """
    levels = range(1, hierarchies[0].depth + 1)
    drawable = [level for level in levels if all(regions.centres(level) is not None for regions in hierarchies)]
    return {level: max(regions.size(level) for regions in hierarchies) for level in drawable}


def are_areas(shapes: geopandas.GeoSeries) -> bool:
    """Return whether all shapes are polygons or multipolygons."""
    return bool(np.isin(shapely.get_type_id(shapes.to_numpy()), _AREAS).all())


def check_shapes(shapes: geopandas.GeoSeries, level: str) -> geopandas.GeoSeries:
    """Check the shapes of a level, make them two-dimensional, and repair polygons that cross themselves.

    Args:
        shapes: (n,) polygons only, or points only.
        level: name of the level, for errors.

    Returns:
        (n,) shapes.

    Raises:
        DomainError: `shapes` is not a GeoSeries; the CRS is missing or has no horizontal coordinates; shapes are missing, without area
            or off the globe, or of other types; or polygons and points are mixed.
    """
    if not isinstance(shapes, geopandas.GeoSeries):
        raise DomainError(f"The geometry of level {level!r} must be a GeoSeries.")
    if shapes.crs is None:
        raise DomainError("The geometry has no CRS; set it with set_crs(...), it is never guessed.")
    if not is_horizontal(shapes.crs):
        raise DomainError(
            "The geometry's CRS has no positions on a map (heights only, or geocentric); reproject it to EPSG:4326, for instance."
        )
    flat = shapely.force_2d(shapes.to_numpy())
    if (shapely.is_missing(flat) | shapely.is_empty(flat)).any():
        raise DomainError(f"Level {level!r} has a region without a shape: give all regions of a level a shape, or none of them.")
    type_ids = shapely.get_type_id(flat)
    are_polygons = np.isin(type_ids, _AREAS)
    if not (are_polygons | (type_ids == _POINT)).all():
        raise DomainError(f"Level {level!r} has shapes that are neither polygons nor points (lines, multipoints or collections).")
    if are_polygons.any() != are_polygons.all():
        raise DomainError(f"Level {level!r} mixes polygons and points: take one kind for all of its regions.")
    _check_bounds(flat, shapes.crs, level)
    return geopandas.GeoSeries(_repair(flat, level) if are_polygons.any() else flat, crs=shapes.crs)


def _check_bounds(shapes: NDArray[np.object_], crs: CRS, level: str) -> None:
    if not np.isfinite(shapely.get_coordinates(shapes)).all():
        raise DomainError(f"Level {level!r} has a coordinate that is not finite.")
    west, south, east, north = shapely.total_bounds(shapes)
    if crs.is_geographic and not (
        -_FARTHEST_LATITUDE <= south <= north <= _FARTHEST_LATITUDE and -_FARTHEST_LONGITUDE <= west <= east <= _FARTHEST_LONGITUDE
    ):
        raise DomainError(f"Level {level!r} has a longitude or latitude out of range: are x and y swapped, or is it another CRS?")


def _repair(shapes: NDArray[np.object_], level: str) -> NDArray[np.object_]:
    """Repair polygons: one that crosses or touches itself is cut into parts that do not, and parts that overlap are united."""
    broken = np.flatnonzero(~shapely.is_valid(shapes))
    if not len(broken):
        return shapes
    parts, owner = repaired_parts(shapes[broken])
    repaired = shapes.copy()
    bounds = np.searchsorted(owner, np.arange(len(broken) + 1)).tolist()
    repaired[broken] = [shapely.union_all(parts[start:stop]) for start, stop in itertools.pairwise(bounds)]
    if shapely.is_empty(repaired).any():
        raise DomainError(f"Level {level!r} has a polygon without area.")
    return repaired


def find_overlaps(shapes: NDArray[np.object_]) -> Places:
    """List pairs of polygons that overlap by more than `_MOST_OVERLAP` of the smaller one, until there are enough to be refused.

    Args:
        shapes: (n,) valid polygons or multipolygons.

    Returns:
        (k, 2) indices, ascending.

    Raises:
        DomainError: so many edges or polygons lie across each other that the search would take minutes.
    """
    parts, owner = shapely.get_parts(np.array(shapes), return_index=True)
    smaller, (one, other) = shapely.area(shapes), _near_parts(parts, owner)
    if len(one) <= _USUAL_PAIRS * len(parts) and shapely.coverage_is_valid(parts):  # far faster than pairs, but not if many overlap
        return np.zeros((0, 2), np.int32)
    pair, pair_of = np.unique(owner[one] * np.int64(len(shapes)) + owner[other], return_inverse=True)
    first, second = np.divmod(pair, len(shapes))
    least = _MOST_OVERLAP * np.minimum(smaller[first], smaller[second])
    may_overlap = np.flatnonzero((np.bincount(pair_of, _common_boxes(parts[one], parts[other]), len(pair)) > least)[pair_of])
    common = np.zeros(len(pair))
    for part in slices(len(may_overlap), _PAIRS_CUT):
        some = may_overlap[part]
        _refuse_tangles(parts[one[some]], parts[other[some]])
        np.add.at(common, pair_of[some], shapely.area(shapely.intersection(parts[one[some]], parts[other[some]])))
        if (common > least).sum() >= ENOUGH_OVERLAPS:
            break
    else:
        if len(one) > _MOST_PAIRS + _USUAL_PAIRS * len(parts):
            raise DomainError(_TANGLED)
    return np.stack([first, second], axis=1)[common > least].astype(np.int32)


def _portions(parts: NDArray[np.object_]) -> list[NDArray[np.int64]]:
    """Divide (p,) polygons into portions whose boxes meet the boxes of few others: at most so many as meet them from west to east."""
    west, _, east, _ = shapely.bounds(parts).T
    met = np.searchsorted(np.sort(west), east, side="right") - np.searchsorted(np.sort(east), west)
    portion = np.cumsum(met) // _PAIRS_AT_ONCE
    return np.split(np.arange(len(parts)), np.flatnonzero(np.diff(portion)) + 1)


def _near_parts(parts: NDArray[np.object_], owner: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List pairs of (p,) parts of different polygons whose boxes meet, the earlier polygon first, until there are too many."""
    tree, found, number = shapely.STRtree(parts), [np.zeros((2, 0), np.int64)], 0
    for portion in _portions(parts):
        one, other = tree.query(parts[portion])
        pairs = np.stack([portion[one], other])
        found.append(pairs[:, owner[pairs[0]] < owner[pairs[1]]])
        number += found[-1].shape[1]
        if number > _MOST_PAIRS + _USUAL_PAIRS * len(parts):
            break
    one, other = np.concatenate(found, axis=1)
    return one, other


def _common_boxes(some: NDArray[np.object_], others: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return the (k,) area that the boxes of each pair of polygons have in common."""
    one, other = (shapely.bounds(each).T.reshape(2, 2, -1) for each in (some, others))
    return np.asarray(np.maximum(np.minimum(one[1], other[1]) - np.maximum(one[0], other[0]), 0.0).prod(axis=0))


def _refuse_tangles(some: NDArray[np.object_], others: NDArray[np.object_]) -> None:
    """Refuse pairs of polygons in which too many edges lie across each other. Only polygons of many corners are looked at closely."""
    corners = shapely.get_num_coordinates(some).astype(np.int64) * shapely.get_num_coordinates(others)
    if corners.sum() <= _MOST_EDGE_PAIRS:
        return
    large = np.argsort(-corners)[: np.searchsorted(np.cumsum(np.sort(corners)[::-1]), corners.sum() - _MOST_EDGE_PAIRS) + 1]
    near = 0
    for one, other in zip(some[large].tolist(), others[large].tolist(), strict=True):
        edges, across = (edges_of(np.array([each])) for each in (one, other))
        tree, step = shapely.STRtree(edges), max(_PAIRS_AT_ONCE // len(edges), 1)
        for start in range(0, len(across), step):
            near += max(len(tree.query(across[start : start + step])[0]) - _USUAL_PAIRS * step, 0)
            if near > _MOST_EDGE_PAIRS:
                raise DomainError(_TANGLED)


def dissolve(finer: geopandas.GeoSeries, parent: Places, size: int) -> geopandas.GeoSeries:
    """Unite the polygons of each region's children.

    Args:
        finer: (n,) polygons of the children, in tree order.
        parent: (n,) index of each child's parent, ascending.
        size: the number of parents.

    Returns:
        (size,) polygons.
    """
    shapes = finer.to_numpy()
    bounds = np.searchsorted(parent, np.arange(size + 1)).tolist()
    return geopandas.GeoSeries([_union(shapes[start:stop]) for start, stop in itertools.pairwise(bounds)], crs=finer.crs)


def _union(shapes: NDArray[np.object_]) -> Any:
    """Unite valid polygons, by removing shared edges if that gives the right result.

    Removing shared edges is ten times as fast. It is right if and only if neighbouring polygons share their vertices and do not overlap;
    exactly then the result is valid, and its area is the sum of the areas.
    """
    if len(shapes) == 1:
        return shapes[0]
    try:
        union = shapely.coverage_union_all(shapes)
    except shapely.errors.GEOSException:
        return shapely.union_all(shapes)
    area = shapely.area(shapes).sum()
    is_right = shapely.is_valid(union) and abs(union.area - area) <= _SAME_AREA * area
    return union if is_right else shapely.union_all(shapes)


def degrees_inside(shapes: geopandas.GeoSeries) -> NDArray[np.float64]:
    """Find (n, 2) longitude and latitude of a point in each shape.

    Raises:
        DomainError: a point has no longitude and latitude.
    """
    inside = shapes.representative_point()
    degrees = np.full((len(shapes), 2), np.nan)
    with suppress(ProjError):
        inside = inside.to_crs(_DEGREES)
        degrees = np.stack([inside.x, inside.y], axis=1)
    if not np.isfinite(degrees).all():
        raise DomainError("A region is where its CRS has no longitude and latitude; is the CRS the right one?")
    return degrees
