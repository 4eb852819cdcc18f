"""Regions without outlines as an indented list: each under the one that contains it, with what is true and what was released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpviz.release.area_release import AreaRelease

_INDENT = "\u2003"  # an em space, which tables do not drop


def list_regions(release: AreaRelease, truth: Sequence[Any], deepest: int) -> pd.DataFrame:
    """List regions from the whole down to a level.

    Args:
        release: of the regions.
        truth: (n_k,) true counts of the regions of each level, the whole first. CURATOR ONLY.
        deepest: the level of the smallest regions that are listed.

    Returns:
        Columns region (indented by its level), true, released, and the ends of its 95 % interval, "95 % from" and "to".
    """
    regions, parts = release.regions, []
    for level in range(deepest + 1):
        known = pd.DataFrame(release.to_frame(level).drop(columns="geometry", errors="ignore"))
        first = np.searchsorted(regions.ancestors(level, deepest), np.arange(regions.size(level)))
        part = pd.DataFrame({"region": [_INDENT * level + str(name) for name in known["name"]], "true": truth[level]})
        part["released"], part["95 % from"], part["to"] = (known[column].round(1) for column in ("count", "ci_low", "ci_high"))
        parts.append(part.assign(first=first, level=level))
    listed = pd.concat(parts, ignore_index=True).sort_values(["first", "level"], kind="stable", ignore_index=True)
    return listed.drop(columns=["first", "level"])
