"""Random nested regions, in every form in which they can be written down."""

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from hypothesis import strategies as st

from dpviz.space.regions import Regions

letters = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)
digits = st.text(st.sampled_from("0123456789"), min_size=1, max_size=6)


@st.composite
def paths(draw, *, most_depth=4, most_children=3, ids=letters | digits):
    """One list of ids per leaf, coarsest first, in tree order; ids are unique in their level, but may stand on several."""
    depth = draw(st.integers(1, most_depth))
    level = [[]]
    for _ in range(depth):
        children = [draw(st.integers(1, most_children)) for _ in level]
        texts = draw(st.lists(ids, min_size=sum(children), max_size=sum(children), unique=True))
        fresh = iter(texts)
        level = [[*path, next(fresh)] for path, number in zip(level, children, strict=True) for _ in range(number)]
    return level


def level_names(depth):
    return [f"level {number}" for number in range(1, depth + 1)]


def table_of(rows, **options):
    """A row per leaf, a column per level."""
    return pd.DataFrame(rows, columns=level_names(len(rows[0])), dtype=object, **options)


def regions_of(rows):
    return Regions.from_table(table_of(rows), levels=level_names(len(rows[0])))


def parents_of(rows, *, root=False):
    """A row per region of any level, as for `Regions.from_parents`; `root` adds a row for the whole."""
    found = [(path[k], path[k - 1] if k else ("all of it" if root else None), k + 1) for path in rows for k in range(len(path))]
    rooted = [("all of it", None, 0)] if root else []
    return pd.DataFrame([*rooted, *dict.fromkeys(found)], columns=["region_id", "parent_id", "level"]).astype(object)


def squares(count, columns=5, side=1.0):
    """Polygons that meet in common vertices, row by row."""
    places = (divmod(place, columns) for place in range(count))
    return [shapely.box(x * side, y * side, (x + 1) * side, (y + 1) * side) for y, x in places]


def map_of(rows, geometry=None, crs="EPSG:4326"):
    """A GeoDataFrame of leaves."""
    return gpd.GeoDataFrame(table_of(rows), geometry=np.array(geometry or squares(len(rows)), object), crs=crs)
