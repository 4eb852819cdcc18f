"""How rows become places: a lattice cell per point, a pair of leaf regions per trip; the same arithmetic in every engine.

A place is row * side + column of a lattice, or origin * leaves + destination. OUTSIDE marks a good row that lies outside the
domain or the regions, BAD one with a cell that is missing, not finite or unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from dpviz.data.columns import readable_numbers
from dpviz.data.flow_rows import BLOCK_CODE, ids_of
from dpviz.data.places import BAD, cells_of, pairs_of, xy_of
from dpviz.space.domain import Domain

if TYPE_CHECKING:
    from dpviz.space.regions import Regions

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = Mapping[str, pa.ChunkedArray]


class Placing(Protocol):
    """What every engine asks: which columns, how many places there are, and the place of each row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, by the file's own names."""
        ...

    @property
    def size(self) -> int:
        """How many places there are: 0 to size - 1."""
        ...

    def places(self, columns: Columns) -> Integers:
        """(n,) the place of each row, OUTSIDE or BAD; a function of the row alone. `columns` are chunked Arrow columns."""
        ...


class LeafPlaces(Protocol):
    """The leaf region of a coordinate pair: OUTSIDE where it lies in none, BAD where it is not finite."""

    def places(self, x: Floats, y: Floats) -> NDArray[np.int32] | Integers:
        """(n,) places of leaf regions."""
        ...


@dataclass(frozen=True, kw_only=True)
class XyCells:
    """Lattice cells of two columns of coordinates, in the domain's CRS.

    Attributes:
        x: column of easting or longitude: numbers, or texts of numbers.
        y: column of northing or latitude.
        domain: the public frame.
    """

    x: str
    y: str
    domain: Domain

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (self.x, self.y)

    @property
    def size(self) -> int:
        """Cells of the lattice."""
        return self.domain.side**2

    def places(self, columns: Columns) -> Integers:
        """(n,) the cell of each row."""
        return cells_of(readable_numbers(columns[self.x]), readable_numbers(columns[self.y]), self.domain)


@dataclass(frozen=True, kw_only=True)
class GeometryCells:
    """Lattice cells of a GeoParquet file's points, in the domain's CRS.

    Attributes:
        geometry: the column.
        encoding: "WKB", or "point" for a record of x and y.
        domain: the public frame.
    """

    geometry: str
    encoding: str
    domain: Domain

    @property
    def columns(self) -> tuple[str, ...]:
        """The column to read."""
        return (self.geometry,)

    @property
    def size(self) -> int:
        """Cells of the lattice."""
        return self.domain.side**2

    def places(self, columns: Columns) -> Integers:
        """(n,) the cell of each row; BAD where there is no point."""
        cells = columns[self.geometry]
        if self.encoding == "point":
            x, y = (readable_numbers(pc.struct_field(cells, axis)) for axis in "xy")
        else:
            x, y = xy_of(shapely.from_wkb(cells.to_numpy(zero_copy_only=False), on_invalid="ignore"))
        return cells_of(x, y, self.domain)


@dataclass(frozen=True, kw_only=True)
class LeafIds:
    """Ids of leaf regions, found letter by letter; with blanks around them only if not without.

    Attributes:
        texts: (leaves,) the ids, in the order of their places.
        cut: letters to which Census block codes of 15 are cut first; None where a column holds none.
    """

    texts: tuple[str, ...] = field(repr=False)
    cut: int | None = None

    @classmethod
    def of(cls, regions: Regions, cut: int | None = None) -> LeafIds:
        """Those of a hierarchy's finest level."""
        return cls(texts=tuple(regions.ids_of(regions.depth).tolist()), cut=cut)

    def places(self, column: pa.ChunkedArray) -> Integers:
        """(n,) places of the leaves, OUTSIDE where no leaf has the id, BAD where it is missing or no id."""
        ids = ids_of(column, "")
        texts = [text[: self.cut] if self.cut and len(text) == BLOCK_CODE else text for text in ids.texts]
        known = self._index.get_indexer(pd.Index(texts, dtype=object))
        other = np.flatnonzero(known < 0)
        known[other] = self._index.get_indexer(pd.Index([texts[place].strip() for place in other.tolist()], dtype=object))
        return np.append(known.astype(np.int64), BAD)[ids.codes]

    @cached_property
    def _index(self) -> pd.Index[str]:
        return pd.Index(self.texts, dtype=object)


@dataclass(frozen=True, kw_only=True)
class IdPairs:
    """Pairs of leaf regions from two columns of ids.

    Attributes:
        origin: column of ids.
        destination: column of ids.
        starts: the ids of the origins.
        ends: the ids of the destinations.
    """

    origin: str
    destination: str
    starts: LeafIds
    ends: LeafIds

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (self.origin, self.destination)

    @property
    def size(self) -> int:
        """Pairs there can be."""
        return len(self.starts.texts) * len(self.ends.texts)

    def places(self, columns: Columns) -> Integers:
        """(n,) the pair of each row."""
        return pairs_of(self.starts.places(columns[self.origin]), self.ends.places(columns[self.destination]), len(self.ends.texts))


@dataclass(frozen=True, kw_only=True)
class XyPairs:
    """Pairs of leaf regions from two pairs of columns of coordinates.

    Attributes:
        origin: columns of x and y.
        destination: columns of x and y.
        starts: finds the leaf regions of origins, from coordinates in the files' CRS.
        ends: finds those of destinations.
        leaves: how many origins and destinations there are.
        crs: in which the look-ups know the leaves.
    """

    origin: tuple[str, str]
    destination: tuple[str, str]
    starts: LeafPlaces = field(repr=False)
    ends: LeafPlaces = field(repr=False)
    leaves: tuple[int, int]
    crs: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return (*self.origin, *self.destination)

    @property
    def size(self) -> int:
        """Pairs there can be."""
        return self.leaves[0] * self.leaves[1]

    def places(self, columns: Columns) -> Integers:
        """(n,) the pair of each row."""
        x, y, x_end, y_end = (readable_numbers(columns[name]) for name in self.columns)
        return pairs_of(self.starts.places(x, y), self.ends.places(x_end, y_end), self.leaves[1])
