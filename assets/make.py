"""Rebuild the outlines of the offline basemap from the npm packages world-atlas 2.0.2 and us-atlas 3.0.1, unpacked.

python assets/make.py PATH_TO_WORLD_ATLAS PATH_TO_US_ATLAS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import shapely
from shapely import affinity

if TYPE_CHECKING:
    from numpy.typing import NDArray

HERE = Path(__file__).parent
MERCATOR_ENDS = (-180.0, -85.0, 180.0, 85.0)  # the poles are infinitely far away on a web map
CONTIGUOUS_STATES = (-126.0, 24.0, -66.0, 50.0)
SOUTHERN_CALIFORNIA = (-121.0, 32.6, -117.2, 34.6)
SMALLEST_ISLAND = 0.01  # square degrees, about 100 km2


def main(world: Path, us: Path) -> None:
    """Write land.json, countries.json and us_states.json beside this file."""
    write("land.json", shapely.get_parts(land(world, us)), 3)
    write("countries.json", simpler(mesh(world / "countries-50m.json", "countries"), 0.04, 0.01), 2)
    write("us_states.json", simpler(mesh(us / "states-10m.json", "states"), 0.002, 0.001), 3)


def land(world: Path, us: Path) -> shapely.Geometry:
    """The world's land: coarse abroad, finer in the contiguous United States, finest around Los Angeles."""
    countries = geopandas.read_file(world / "countries-50m.json", layer="countries")
    home = shapely.clip_by_rect(whole(countries.geometry[countries["name"] == "United States of America"].values), *CONTIGUOUS_STATES)
    abroad = shapely.difference(outline(world / "land-50m.json", "land"), home)
    seam = shapely.intersection(home, shapely.buffer(abroad, 0.05))
    census = shapely.clip_by_rect(outline(us / "nation-10m.json", "nation"), *CONTIGUOUS_STATES)
    corner = shapely.box(*SOUTHERN_CALIFORNIA)
    detail = shapely.intersection(outline(world / "land-10m.json", "land"), corner)
    fine = shapely.set_precision(shapely.union(shapely.difference(census, corner), detail), 0.001)
    coarse = simpler(larger(shapely.union(abroad, seam), SMALLEST_ISLAND), 0.05, 0.01)
    return shapely.clip_by_rect(shapely.union(coarse, larger(fine, SMALLEST_ISLAND / 50), grid_size=0.001), *MERCATOR_ENDS)


def outline(path: Path, layer: str) -> shapely.Geometry:
    """One valid geometry of a TopoJSON layer's polygons, cut along the 180th meridian."""
    return whole(geopandas.read_file(path, layer=layer).geometry.values)


def whole(shapes: Any) -> shapely.Geometry:
    """The union of polygons whose rings may step across the 180th meridian."""
    areas = [
        shapely.difference(folded(polygon.exterior), shapely.union_all([folded(hole) for hole in polygon.interiors]))
        for polygon in shapely.get_parts(shapes)
    ]
    return shapely.union_all(areas)


def folded(ring: shapely.LinearRing) -> shapely.Geometry:
    """The area inside a ring, between -180 and 180 degrees; a ring around the South Pole is closed along it."""
    longitude, latitude = shapely.get_coordinates(ring).T
    longitude = np.unwrap(longitude, period=360)
    if abs(longitude[-1] - longitude[0]) > 180:
        longitude, latitude = np.r_[longitude, longitude[[-1, 0]]], np.r_[latitude, -90, -90]
    area = shapely.make_valid(shapely.polygons(np.column_stack([longitude, latitude])))
    pieces = [shapely.clip_by_rect(area, turn - 180, -90, turn + 180, 90) for turn in (-360, 0, 360)]
    return shapely.union_all([affinity.translate(piece, -turn) for piece, turn in zip(pieces, (-360, 0, 360), strict=True)])


def larger(shape: shapely.Geometry, area: float) -> shapely.Geometry:
    """The polygons of a shape that cover more than `area` square degrees."""
    parts = shapely.get_parts(shape)
    return shapely.multipolygons(parts[shapely.area(parts) > area])


def simpler(shape: shapely.Geometry, tolerance: float, grid: float) -> shapely.Geometry:
    """The shape within `tolerance` degrees, its corners on multiples of `grid` degrees."""
    return shapely.set_precision(shapely.simplify(shape, tolerance), grid)


def mesh(path: Path, layer: str) -> shapely.Geometry:
    """Borders between two areas of a TopoJSON layer, each once."""
    topology = json.loads(path.read_text())
    users = [set(flat(area.get("arcs", []))) for area in topology["objects"][layer]["geometries"]]
    numbers, uses = np.unique([arc for arcs in users for arc in arcs], return_counts=True)
    lines = [shapely.linestrings(decoded(topology, number)) for number in numbers[uses > 1]]
    return shapely.line_merge(shapely.multilinestrings(lines))


def flat(arcs: list[Any]) -> list[int]:
    """Arc numbers of nested rings; ~number stands for the same arc backwards."""
    return [leaf for arc in arcs for leaf in (flat(arc) if isinstance(arc, list) else [arc if arc >= 0 else ~arc])]


def decoded(topology: dict[str, Any], number: int) -> NDArray[np.float64]:
    """(n, 2) longitude and latitude of one arc, stored as steps on a grid (TopoJSON specification, 2.1.3 and 2.1.4)."""
    transform = topology["transform"]
    return np.cumsum(topology["arcs"][number], axis=0) * transform["scale"] + transform["translate"]


def write(name: str, shapes: Any, decimals: int) -> None:
    """Write a minified GeoJSON FeatureCollection with one feature per shape."""
    features = [{"type": "Feature", "properties": {}, "geometry": json.loads(shapely.to_geojson(shape))} for shape in np.atleast_1d(shapes)]
    collection = {"type": "FeatureCollection", "features": features}
    text = json.dumps(collection, separators=(",", ":"))
    rounded = json.loads(text, parse_float=lambda number: round(float(number), decimals))
    (HERE / name).write_text(json.dumps(rounded, separators=(",", ":")).replace(".0,", ",").replace(".0]", "]") + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
