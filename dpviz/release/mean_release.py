"""The release of sums and means of a number of each record, by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers
from dpviz.release.base import Level, Rows
from dpviz.release.cross_release import CrossRelease
from dpviz.release.intervals import STDDEVS, half_widths
from dpviz.space.summed import Summed

_HIGH = 2  # the node of the slot "high" among the whole, "low" and "high"
_ONE_RECORD = 1e-9  # keeps a mean of no record finite


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanRelease(CrossRelease):
    """Noisy numbers of records, sums and means of their values, of nested regions. PUBLIC: everything in it was released by a mechanism.

    As an `AreaRelease` it has the numbers of records with a value. Its two slots split each record between the bounds, as `Summed` says.

    Attributes:
        categories: the public bounds and grid of the values.

    >>> import dpviz as dv
    >>> regions = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    >>> people = pd.DataFrame({"region": ["a"] * 300 + ["b"] * 200, "age": [30] * 300 + [50] * 200})
    >>> areas = dv.AreaCounts.from_table(people, regions=regions, categories=dv.Summed(low=0, high=100), slot="age", count="none")
    >>> release = dv.CrossTree().release(areas, dv.PureBudget(100), dv.Entropy.seeded(1))
    >>> release.means("town")[["region", "count", "sum", "mean"]].round(-1).values.tolist()
    [['a', 300.0, 9000.0, 30.0], ['b', 200.0, 10000.0, 50.0]]
    """

    categories: Summed

    def __repr__(self) -> str:
        size, finest = self.regions.size(self.regions.depth), self.regions.levels[-1]
        return f"MeanRelease({self.mechanism}, {size:,} {finest}, {self.categories!r}{self._stamp})"

    def to_frame(self, level: Any = None) -> Any:
        """Make a table as `CrossRelease.to_frame` does; of a level's regions also with sum, mean, mean_low and mean_high of `means`."""
        frame = super().to_frame(level)
        if isinstance(level, tuple):
            return frame
        means = self.means(level)[["sum", "mean", "mean_low", "mean_high"]]
        position = list(frame.columns).index("geometry")
        for number, name in enumerate(means):
            frame.insert(position + number, name, means[name].to_numpy())
        return frame

    def means(self, level: Level | None = None) -> pd.DataFrame:
        """Make a table of the sums and means of a level's regions.

        Args:
            level: 0 (the whole) to g, or a level's name; None for the finest.

        Returns:
            DataFrame with region (id), name, count (records with a value), sum and mean of their values, mean_low and mean_high (a 95 %
            interval of the mean, never outside the bounds), sum_low and sum_high (one of the sum), and status. The mean is NaN where its
            interval is wider than half of the bounds: of so few records only the interval is known.

        Raises:
            DomainError: no such level.
        """
        number = self.level_number(level)
        nodes, values = self.nodes(number), self.categories
        low, high = self._mean_ends(nodes)
        mean = values.low + (values.high - values.low) * self.cross_count[nodes, _HIGH] / np.maximum(self.count[nodes], _ONE_RECORD)
        half_width = half_widths(self.noise, np.sqrt(self._variance(self._at_bounds)[nodes]))
        centre = self.cross_centre[nodes] @ self._at_bounds
        return pd.DataFrame(
            {
                "region": self.regions.ids_of(number),
                "name": self.regions.names_of(number),
                "count": self.count[nodes],
                "sum": self.cross_count[nodes] @ self._at_bounds,
                "sum_low": centre - half_width,
                "sum_high": centre + half_width,
                "mean": np.where(high - low > (values.high - values.low) / 2, np.nan, np.clip(mean, values.low, values.high)),
                "mean_low": low,
                "mean_high": high,
                "status": self.status,
            }
        )

    def observe(self, leaves: tuple[int, ...]) -> tuple[list[Rows], Floats]:
        """Return the numbers of both slots of the regions on the paths to some leaves of the frame, which are regions by values."""
        places = dict.fromkeys(leaf // self.categories.entries for leaf in leaves)
        return super().observe(tuple(slot for place in places for slot in (2 * place, 2 * place + 1)))

    @property
    def _at_bounds(self) -> Floats:
        """The (3,) weights of the slots in the sum: each record lies at one of the bounds."""
        return np.array([0.0, self.categories.low, self.categories.high])

    def _variance(self, of_slots: Floats) -> Floats:
        """Return the (n,) variances of weighted sums of the slots of all regions."""
        return self.spread.with_slots_weighed(of_slots).variances(self.hierarchy)

    def _mean_ends(self, nodes: Integers) -> tuple[Floats, Floats]:
        """Return the (k,) lower and (k,) upper ends of intervals of means.

        Let A be the estimate of the slot "high", N that of both, and p = (mean - L) / (U - L). The error of A - p N has the variance
        v(p) = var A - 2 p cov(A, N) + p**2 var N. The interval has all p from 0 to 1 with (A - p N)**2 <= z**2 v(p) + g**2, where z is the
        half width of an interval in standard deviations and g is one step, as noise has whole steps. That is a quadratic inequality: where
        it holds outside of its roots, the interval is from the least to the largest such p; where no p is left, all are taken.

        Source:
            Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16, 1954.
        """
        high, both, difference = (self._variance(np.array(of_slots, float))[nodes] for of_slots in ((0, 0, 1), (0, 1, 1), (0, 1, 0)))
        covariance = (high + both - difference) / 2
        a, n = self.cross_centre[nodes, _HIGH], self.centre[nodes]
        z2 = STDDEVS[self.noise] ** 2
        square, half, rest = n**2 - z2 * both, a * n - z2 * covariance, a**2 - z2 * high - self.categories.per_record**-2.0
        root = np.sqrt(np.maximum(half**2 - square * rest, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort(np.stack([half - root, half + root]) / square, axis=0)
        outside = (square <= 0) & (half**2 > square * rest)
        low = np.where(outside & (ends[0] >= 0), 0.0, np.where(outside, ends[1], ends[0]))
        high_end = np.where(outside & (ends[1] <= 1), 1.0, np.where(outside, ends[0], ends[1]))
        empty = ~(low <= np.minimum(high_end, 1.0)) | (high_end < 0) | ((square <= 0) & ~outside)
        first, last = (np.where(empty, fallback, np.clip(end, 0.0, 1.0)) for end, fallback in ((low, 0.0), (high_end, 1.0)))
        scale = self.categories.high - self.categories.low
        return self.categories.low + scale * first, self.categories.low + scale * last
