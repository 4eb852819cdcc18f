"""Regions with geometry, and releases of trips between them, for the tests of maps."""

import geopandas
import numpy as np
import pandas as pd
import shapely

from dpviz.data.trips import TripCounts
from dpviz.evaluation.trip_metrics import evaluate_trips
from dpviz.mechanisms.trips.flat_gaussian import FlatGaussian
from dpviz.mechanisms.trips.top_down import TopDown
from dpviz.privacy.budget import ApproxBudget
from dpviz.privacy.entropy import Entropy
from dpviz.space.regions import Regions
from dpviz.view.trips_layers import fade_at_origins

MECHANISMS = {"top_down": TopDown(), "flat_gaussian": FlatGaussian()}


def blob(x, y, corners=12, radius=0.45):
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    far = radius * (0.8 + 0.2 * np.sin(7 * turn + x))
    return shapely.Polygon(np.column_stack([x + far * np.cos(turn), y + far * np.sin(turn)]))


def grid(columns=6, rows=4, *, shapes="polygons", corners=12, west=-100.0, south=35.0, name="County"):
    """Leaf regions in a grid, in squares of 2 x 2 to the level above; with polygons, points or no geometry."""
    x, y = (part.ravel() for part in np.meshgrid(np.arange(columns), np.arange(rows)))
    table = pd.DataFrame({"state": [f"s{a // 2:02}{b // 2:02}" for a, b in zip(x, y, strict=True)]})
    table["county"] = [f"c{place:05}" for place in range(len(x))]
    table["label"] = [f"{name} {place}" for place in range(len(x))]
    if shapes == "polygons":
        places = [blob(west + a, south + b, corners) for a, b in zip(x, y, strict=True)]
    else:
        places = shapely.points(west + x, south + y)
    if shapes is not None:
        table = geopandas.GeoDataFrame(table, geometry=places, crs="EPSG:4326")
    return Regions.from_table(table, levels=["state", "county"], names={"county": "label"})


def random_trips(regions, pairs=150, seed=1, destinations=None):
    rng = np.random.default_rng(seed)
    a, b = regions.size(regions.depth), (destinations or regions).size(regions.depth)
    key = np.sort(rng.choice(a * b, min(pairs, a * b), replace=False))
    origin, destination = (part.astype(np.int32) for part in np.divmod(key, b))
    count = np.minimum(1 + rng.pareto(0.7, len(key)) * 5, 50_000).astype(np.int64)
    return TripCounts(regions=regions, origin=origin, destination=destination, count=count, destinations=destinations)


def released(trips, mechanism="top_down", epsilon=1.0, seed=1):
    """A release, and the true trips."""
    release = MECHANISMS[mechanism].release(trips, ApproxBudget(epsilon, "1e-8"), Entropy.seeded(seed))
    return release, evaluate_trips(release, trips)


def layers_of(drawing):
    """What a drawing shows, a row per region or arc: its colour c, or a and b where an arc begins and ends, its size, places and texts.

    The size of a region is the radius r of its dot, None if it has none; that of an arc is its width w, and d says whether it is dashed.
    """
    layers = {name: _area_rows(areas) for name, areas in zip(("regions", "ends"), drawing.areas, strict=False)}
    return layers | {"arcs": _arc_rows(drawing.arcs)}


def _area_rows(areas):
    radii = areas.dots.tolist() or [None] * len(areas.color)
    looks = zip(areas.color.tolist(), radii, strict=True)
    return [_row(areas.texts, i, i=i, c=color, r=radius) for i, (color, radius) in enumerate(looks)]


def _arc_rows(arcs):
    columns = {"o": arcs.origin, "z": arcs.destination, "b": arcs.color, "w": arcs.width, "d": arcs.dashed}
    columns["a"] = fade_at_origins(arcs.color)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [_row(arcs.texts, k, **dict(zip(columns, row, strict=True))) for k, row in enumerate(rows)]


def _row(texts, place, **numbers):
    truth = {} if texts.truth is None else {"e": texts.truth[place]}
    return numbers | {"n": texts.title[place], "t": texts.text[place].replace("\n", "; ")} | truth
