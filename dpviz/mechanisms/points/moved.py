"""Contrasts that move each record before it is counted: jittered points, and what planar Laplace noise shares with them. NOT PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpviz.amounts import format_decimal
from dpviz.arrays import Floats, Places
from dpviz.data.points import PointCounts
from dpviz.errors import DomainError
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.contrasts import Table
from dpviz.mechanisms.points.contrasts import PointContrast, fit_grid, side_setting
from dpviz.privacy.entropy import Entropy, require_entropy
from dpviz.space.domain import Domain
from dpviz.space.lengths import cell_lengths
from dpviz.space.tree import Tree

MOST_MOVED = 2**25
"""The most records that are moved one by one."""
_USUAL_SHARE = 1 / 50  # of the domain's shorter side: the radius that is taken if none is given


def radius_setting(label: str) -> Any:
    """Declare the setting `radius` of a method that moves records."""
    return setting(
        None,
        label,
        optional=True,
        low=1e-6,
        high=1e8,
        help="In metres; on a plane without a map, in its units. Left empty: a fiftieth of the domain's shorter side.",
    )


@dataclass(frozen=True, kw_only=True)
class JitteredPoints(PointContrast):
    """Each record is moved to a random place within a fixed radius, and then counted. NOT PRIVATE: no one leaves the circle.

    Protects: nothing that a proof covers. A moved point shows a circle that surely holds the true one; several points of one person,
    moved independently, show it ever more closely.

    Source:
        Random perturbation within a disc, a geographic mask: Kwan, Casas, Schmitz, "Protection of geoprivacy and accuracy of spatial
        information", Cartographica 39(2), 2004.

    Deviations:
        Records are known by their cell of the lattice, from whose middle they are moved, evenly within the disc and independently of each
        other. Cells have the width of their row of the map. Records that would leave the domain go to its nearest cell. Counts are shown on
        a grid. Without a radius, it is a fiftieth of the shorter side of the domain.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster", size=1000)
    >>> release = dv.contrasts.JitteredPoints(side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> release.count[0] == points.count.sum()
    np.True_
    """

    key: ClassVar[str] = "jittered_points"
    title: ClassVar[str] = "Jittered points (NOT PRIVATE)"
    summary: ClassVar[str] = "NOT PRIVATE: each point is moved at random within a fixed radius, as shared research data often are."
    attack: ClassVar[str] = "the mean of one person's moved points is near the true place, and no point leaves its circle."
    lesson: ClassVar[str] = "finding_home"

    radius: float | None = radius_setting("Radius (m)")
    side: int = side_setting()

    def tabulate(self, points: PointCounts, entropy: Entropy) -> tuple[Tree, Table]:
        """Move every record, and count the grid."""
        radius = choose_radius(self.radius, points.domain)
        step = f"every record moved at random by at most {format_decimal(radius, 3)}"
        return count_moved(points.domain, self.side, *self.move(points, entropy), step)

    def notes(self, domain: Domain) -> tuple[str, ...]:
        """Note a lattice that is too coarse for the radius."""
        return note_coarse_lattice(domain, choose_radius(self.radius, domain))

    def move(self, points: PointCounts, entropy: Entropy) -> tuple[Places, Places]:
        """Move every record.

        Args:
            points: n records. PRIVATE.
            entropy: the stream from which directions and distances are drawn.

        Returns:
            (n,) columns and (n,) rows of the moved records, in the order of the cells.
        """
        (column, row), radius = list_records(points), choose_radius(self.radius, points.domain)
        angle, reach = 2 * np.pi * draw_uniform(len(row), entropy), radius * np.sqrt(draw_uniform(len(row), entropy))
        width, height = cell_lengths(points.domain, row)
        east, north = np.floor(0.5 + reach * np.cos(angle) / width), np.floor(0.5 + reach * np.sin(angle) / height)
        return clip_to_domain(points.domain, column + east, row + north)


def note_coarse_lattice(domain: Domain, radius: float) -> tuple[str, ...]:
    """Return a note for the receipt if cells of the lattice are larger than a radius: records are moved from cell to cell."""
    widths, heights = cell_lengths(domain, np.array([domain.side // 2]))
    if radius >= max(widths[0], heights[0]):
        return ()
    return ("The cells of the lattice are larger than the radius, so that few records leave theirs: choose a finer resolution.",)


def clip_to_domain(domain: Domain, column: NDArray[Any], row: NDArray[Any]) -> tuple[Places, Places]:
    """Return the nearest cell in the domain of each (n,) column and (n,) row, which may lie outside."""
    last = domain.side - 1
    return np.clip(column, 0, last).astype(np.int32), np.clip(row, 0, last).astype(np.int32)


def count_moved(domain: Domain, side: int, column: Places, row: Places, step: str) -> tuple[Tree, Table]:
    """Count (n,) moved records on a grid; `step` describes how they were moved."""
    tree = fit_grid(domain, side)
    shown = tree.sums(column, row, np.ones(len(row), np.int64)).astype(np.float64)
    return tree, Table(shown=shown, count=shown, steps=(step,))


def choose_radius(radius: float | None, domain: Domain) -> float:
    """Return a radius, or a fiftieth of the domain's shorter side if it is None, in metres (or units of the plane).

    >>> choose_radius(None, Domain(bounds=(0, 0, 100, 200), crs=None, order=4))
    2.0
    """
    if radius is not None:
        return radius
    widths, heights = cell_lengths(domain, np.array([domain.side // 2]))
    return float(min(widths[0], heights[0])) * domain.side * _USUAL_SHARE


def list_records(points: PointCounts) -> tuple[Places, Places]:
    """Return the (n,) columns and (n,) rows of all records, one by one. PRIVATE.

    Raises:
        DomainError: there are more records than are moved one by one.
    """
    if int(points.count.sum()) > MOST_MOVED:
        raise DomainError(f"At most {MOST_MOVED:,} records are moved one by one; take a sample of them.")
    return np.repeat(points.column, points.count), np.repeat(points.row, points.count)


def draw_uniform(n: int, entropy: Entropy) -> Floats:
    """Return (n,) random numbers from 0 up to 1, with 53 bits. Good enough where nothing is proved."""
    return (require_entropy(entropy).words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
