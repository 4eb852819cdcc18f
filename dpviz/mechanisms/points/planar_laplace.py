"""The local model: every person perturbs their own location with planar Laplace noise, and nobody collects true ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpviz.amounts import format_decimal
from dpviz.arrays import Places
from dpviz.data.points import PointCounts
from dpviz.mechanisms.base import LOCAL, setting
from dpviz.mechanisms.contrasts import Table
from dpviz.mechanisms.points.contrasts import PointContrast, side_setting
from dpviz.mechanisms.points.moved import (
    choose_radius,
    clip_to_domain,
    count_moved,
    list_records,
    note_coarse_lattice,
    radius_setting,
)
from dpviz.privacy.budget import exact
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.planar_laplace import planar_laplace
from dpviz.space.domain import Domain
from dpviz.space.lengths import cell_lengths, unit_of_length
from dpviz.space.tree import Tree


@dataclass(frozen=True, kw_only=True)
class PlanarLaplace(PointContrast):
    """Geo-indistinguishability: each location is perturbed by itself before anyone sees it, and then counted.

    Protects: each location by itself, from everyone, the collector included. Whoever sees one perturbed location can tell two true places
    at a distance d apart by a factor of at most exp(l d / r): exp(l) within the radius r, and more the farther apart they are. Distance is
    that of the middles of the lattice's cells on the flat map, where all are taken to be as narrow as the narrowest of the domain, so that
    it is not above the one along meridians and parallels. In degrees the shortest way over the globe is shorter yet, but for far places
    only: by a millionth at most across a city, and by 2.6 % between two coasts of the United States. For noise and proof see
    `privacy.planar_laplace`; going to the nearest cell of the domain, and counting, are post-processing.

    Not claimed: epsilon-differential privacy of the counts. There is no bound for two places far apart, so that no part of a budget is
    spent, and l / r is not comparable with an epsilon. k locations of one person add up to k l / r. How many locations there are is
    public. This implementation is given the true locations and plays all the people: it shows what the local model costs, and its releases
    are NOT PRIVATE and must not be published.

    Source:
        Andres, Bordenabe, Chatzikokolakis, Palamidessi, "Geo-indistinguishability: differential privacy for location-based systems", CCS
        2013, Sections 3 and 4.

    Deviations:
        Noise is drawn on the lattice with P(y | x) proportional to exp(-l d(x, y) / r), exactly, where the paper rounds continuous noise
        and then enlarges it for the rounding. The lattice of the noise has no end. With the cells of the domain alone, P would have a
        normalizing constant of its own for each x, which is smaller near the border, and the factor could be up to exp(2 l d / r). Counts
        are those of the perturbed locations: they are not corrected for the blur.

    >>> import dpviz as dv
    >>> points = dv.load_sample("gaussian_cluster", size=1000)
    >>> dv.contrasts.PlanarLaplace(radius=20, side=16).release(points, dv.PureBudget(1), dv.Entropy.seeded(1))
    PointRelease(planar_laplace, 256 partitions, NOT PRIVATE)
    """

    key: ClassVar[str] = "planar_laplace"
    title: ClassVar[str] = "Planar Laplace, local model (NOT PRIVATE here)"
    menu_group: ClassVar[str] = LOCAL
    summary: ClassVar[str] = (
        "NOT PRIVATE as a release: it plays people who each blur their own location and trust nobody. Each location is protected by itself,"
        " the less the farther apart two places are; no ε bounds what the counts reveal."
    )
    attack: ClassVar[str] = "its guarantee is another one, for each location by itself; many locations of one person add up."
    lesson: ClassVar[str] = "trust"

    radius: float | None = radius_setting("Radius r (m)")
    level: float = setting(
        1.4, "Level l within the radius", low=0.01, high=100, help="Two places within r are told apart by a factor of at most e^l; 1.4: 4."
    )
    side: int = side_setting()

    def tabulate(self, points: PointCounts, entropy: Entropy) -> tuple[Tree, Table]:
        """Perturb every location, and count the grid."""
        mean = 2 * choose_radius(self.radius, points.domain) / self.level
        step = f"every location perturbed by itself with planar Laplace noise, by {format_decimal(mean, 3)} on average"
        return count_moved(points.domain, self.side, *self.perturb(points, entropy), step)

    def perturb(self, points: PointCounts, entropy: Entropy) -> tuple[Places, Places]:
        """Perturb every location by itself.

        Args:
            points: n records. PRIVATE.
            entropy: the stream from which noise is drawn.

        Returns:
            (n,) columns and (n,) rows of the perturbed locations, in the order of the cells.
        """
        column, row = list_records(points)
        east, north = planar_laplace(len(row), self.rates(points.domain), entropy)
        return clip_to_domain(points.domain, column + east, row + north)

    def notes(self, domain: Domain) -> tuple[str, ...]:
        """State the guarantee of one location in words, for the receipt."""
        within = f"{format_decimal(choose_radius(self.radius, domain), 3)} {unit_of_length(domain)}".strip()
        note = (
            f"Each location by itself: two places within {within} of each other are told apart by a factor of at most"
            f" {math.exp(self.level):,.3g}, places twice as far apart by its square. Nobody collects true locations in the local model;"
            " here they are played."
        )
        return (note, *note_coarse_lattice(domain, choose_radius(self.radius, domain)))

    def rates(self, domain: Domain) -> tuple[Fraction, Fraction]:
        """Return l / r times the width, and times the height, of the narrowest cell of a domain.

        >>> PlanarLaplace(radius=4, level=2).rates(Domain(bounds=(0, 0, 8, 4), crs=None, order=2))
        (Fraction(1, 1), Fraction(1, 2))
        """
        widths, heights = cell_lengths(domain, np.arange(domain.side))
        per_length = exact(self.level, "The level") / exact(choose_radius(self.radius, domain), "The radius")
        return per_length * Fraction(float(widths.min())), per_length * Fraction(float(heights.min()))
