"""The fitness for use of the levels of a release of areas, judged by released numbers alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpviz.release.area_release import AreaRelease
from dpviz.release.verdict import verdict

NARROW = 0.5
"""An interval is narrow if it is narrower than this share of the count."""


def fitness(release: AreaRelease) -> pd.DataFrame:
    """Make a table of fitness for use. PUBLIC: it follows from released numbers alone.

    Args:
        release: of areas.

    Returns:
        DataFrame with one row per level, the whole first: level, name, regions (how many), mean (released records in an average
        region), stddev (mean standard deviation), relative (stddev in percent of the mean), grade ("usable" up to 40 %, "rough" up to
        100 %, else "mostly noise"; see `verdict`), high, medium and low (percent of the regions with this reliability), narrow (percent
        of the regions whose interval is narrower than half of the released count), and status.

    >>> import dpviz as dv
    >>> release = dv.RegionTree().release(dv.load_sample("us_residents"), dv.PureBudget(1), dv.Entropy.seeded(1))
    >>> fitness(release)["grade"].tolist()
    ['usable', 'usable', 'usable']
    """
    rows = []
    for graded in verdict(release).levels:
        grades = release.reliability(graded.level)
        rows.append(
            {
                "level": graded.level,
                "name": graded.name,
                "regions": graded.parts,
                "mean": graded.mean,
                "stddev": graded.stddev,
                "relative": 100 * graded.stddev / graded.mean if graded.mean > 0 else np.inf,
                "grade": graded.grade,
                **{grade: 100 * float(np.mean(grades == grade)) for grade in ("high", "medium", "low")},
                "narrow": 100 * narrow_share(release, graded.level),
                "status": release.status,
            }
        )
    return pd.DataFrame(rows)


def narrow_share(release: AreaRelease, level: int) -> float:
    """Compute which share of a level's regions has an interval that is narrower than half of the released count."""
    low, high = release.interval(level)
    return float(np.mean(high - low < NARROW * release.count[release.nodes(level)]))
