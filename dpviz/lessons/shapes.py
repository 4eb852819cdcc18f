"""Lesson: the same people counted in counties, squares and hexagons; what the shape of the regions costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import altair as alt
import geopandas
import numpy as np
import pandas as pd
import scipy
import shapely

from dpviz.amounts import format_percent
from dpviz.arrays import Floats, Integers
from dpviz.data.areas import AreaCounts
from dpviz.lessons.charts import COLORS, Look, curve_chart, style_channel
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import FILL
from dpviz.mechanisms.areas.flat import FlatAreas
from dpviz.mechanisms.base import setting
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.area_fitness import NARROW, narrow_share
from dpviz.release.area_release import AreaRelease
from dpviz.samples.trips import us_counties
from dpviz.space.area_shares import leaf_shares
from dpviz.space.regions import Regions
from dpviz.view.charts import CAPTION, FORMAT, FRAME, GREY, add_texts, describe_values, finish, tooltip
from dpviz.view.places import read_towns

COUNTIES, SQUARES, HEXAGONS = "counties", "squares", "hexagons"
SHAPES = (COUNTIES, SQUARES, HEXAGONS)
PEOPLE = ("5,000", "20,000", "100,000")
RADII = (10, 20, 40, 80)
"""Radii of the circles that are asked for, in kilometres."""
_STATE, _PLANE = "GA", "EPSG:5070"  # Georgia has many counties; the plane keeps areas, in metres
_SEED, _CIRCLES = 5, 80
_KNOWN = ("regions known well", "people in regions known well", "regions with an interval from 0")
_RURAL = 0.35  # share of the people who live anywhere in the state
_TOWN_DENSITY = 900.0  # people per km2 of a town
_SIMPLER = 1500.0  # metres: smaller corners of counties are left out on the maps
_MAP_HEIGHT = 330
_KM2 = 1e6


@dataclass(frozen=True, kw_only=True)
class ShapesOfRegions(Lesson):
    """Released counts of the same people in three kinds of regions, how well the regions are known, and the error of circles."""

    key: ClassVar[str] = "shapes"
    title: ClassVar[str] = "Counties, squares or hexagons"
    text: ClassVar[str] = (
        "Every region gets the same noise whatever its shape, so that the shape decides how many people share it: counties are drawn where"
        " people live, while squares and hexagons of the same average size put many people into a few cells and leave many cells nearly"
        " empty. A question that cuts regions pays a second time, since nobody knows where in a cut region its people live: round hexagons"
        " mostly lose least by it."
    )
    task: ClassVar[str] = "choose fewer people, and see which shape still has regions that are known well."
    question: ClassVar[str] = (
        "The same 20,000 people in the state of Georgia are counted in counties, in squares and in hexagons of the same average size, all"
        " with the same noise and ε = 0.1. In which are the most regions known well, to within a quarter of their count?"
    )
    choices: ClassVar[tuple[str, ...]] = ("counties", "squares", "hexagons", "alike: the noise is the same")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "Of the counties 23.9 % are known well, against 15.5 % of the squares and 14.4 % of the hexagons. The noise is ± 14.1 people in"
        " each, but counties are small where people live, so that fewer of them are nearly empty. It turns with the number of people:"
        " for 5,000 all three are at about 3 %."
    )
    in_class: ClassVar[str] = (
        "The wrong belief is that equal noise means equal quality. Ask what 14 people more or less mean for a region of 20 people, and"
        " for one of 500. Let them choose 5,000 and then 100,000 people. Then look at the circles: a question that cuts through regions"
        " pays for their shape a second time."
    )

    epsilon: float = epsilon_setting(0.1)
    people: str = setting("20,000", "People", choices=PEOPLE, help="Made-up people around the real towns of Georgia, and between them.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        people = int(self.people.replace(",", ""))
        truths, budget = {shape: count_people(shape, people) for shape in SHAPES}, PureBudget(self.epsilon)
        releases = {shape: FlatAreas().release(truth, budget, Entropy.seeded(self.draw)) for shape, truth in truths.items()}
        top = max(float(np.quantile(truth.level_counts()[1], 0.97)) for truth in truths.values())
        maps = tuple(_draw_map(shape, releases[shape], top) for shape in SHAPES)
        known = _list_known(releases, truths)
        noise = f"± {float(releases[COUNTIES].stddev(1)[0]):.3g}"
        figures = [Figure("Noise of every region", noise, "Standard deviation, in people: the same for each shape.")]
        for row in known.to_dict("records"):
            label, value = f"{row['shape'].capitalize()} known well", format_percent(row["regions known well"] / 100)
            figures.append(Figure(label, value, f"Of {row['regions']:,} {row['shape']}, {row['empty']:,} of which are empty."))
        return LessonFigure(
            asked=(maps,),
            rows=(maps, (_draw_bars(known), _draw_circles(releases, truths, people))),
            figures=tuple(figures),
            note=(
                "A region is known well if its 95 % interval is narrower than half of its count; squares and hexagons at the border reach"
                " beyond the state. Regions that a circle cuts count by the share of their area. Lines: typical error by theory, dots: this"
                " run."
            ),
        )


@lru_cache(maxsize=1)
def _counties() -> geopandas.GeoDataFrame:
    table = us_counties()
    return table[table["state"].astype(str) == _STATE].to_crs(_PLANE).reset_index(drop=True)


@lru_cache(maxsize=1)
def _state() -> Any:
    """The outline of the state, simplified."""
    return shapely.simplify(_counties().union_all(), _SIMPLER)


@lru_cache(maxsize=len(SHAPES))
def regions_of(shape: str) -> Regions:
    """Make the regions of one shape: all counties, or the squares or hexagons with the same average area that touch the state."""
    if shape == COUNTIES:
        counties = _counties()
        table = geopandas.GeoDataFrame({"region": counties["county"].astype(str), "name": counties["name"]}, geometry=counties.geometry)
        return Regions.from_table(table, levels=["region"], names={"region": "name"})
    polygons = geopandas.GeoSeries(shapely.polygons(_corners(shape)), crs=_PLANE)
    return Regions.from_polygons(polygons[polygons.intersects(_state()).to_numpy()].reset_index(drop=True))


def _corners(shape: str) -> Floats:
    """Return (n, 4 or 6, 2) corners of squares or hexagons over the box around the state, each as large as an average county."""
    area = float(_counties().area.mean())
    west, south, east, north = _counties().total_bounds
    if shape == SQUARES:
        side = math.sqrt(area)
        x, y = np.meshgrid(np.arange(west, east + side, side), np.arange(south, north + side, side))
        around = side / 2 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    else:
        radius = math.sqrt(2 * area / (3 * math.sqrt(3)))
        width, height = math.sqrt(3) * radius, 1.5 * radius
        x, y = np.meshgrid(np.arange(west, east + 2 * width, width), np.arange(south, north + 2 * height, height))
        x = x - (np.arange(len(x)) % 2)[:, None] * width / 2
        angle = np.radians(30 + 60 * np.arange(6))
        around = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    centres = np.stack([x.ravel(), y.ravel()], axis=1)
    return np.asarray(centres[:, None] + around)


@lru_cache(maxsize=len(PEOPLE))
def homes(people: int) -> Floats:
    """Make up (people, 2) homes in the plane: most around the towns of the state, the others anywhere in it."""
    rng = np.random.default_rng(_SEED)
    towns = read_towns()
    places = geopandas.GeoSeries(geopandas.points_from_xy(towns.longitude, towns.latitude), crs="EPSG:4326").to_crs(_PLANE)
    inside = places.within(_state()).to_numpy()
    centres, size = np.stack([places.x, places.y], axis=1)[inside], towns.population[inside].astype(np.float64)
    town = rng.choice(len(centres), 2 * people, p=size / size.sum())
    spread = np.sqrt(size[town] / (_TOWN_DENSITY * math.pi) * _KM2)
    at_towns = centres[town] + spread[:, None] * rng.standard_normal((2 * people, 2))
    west, south, east, north = _counties().total_bounds
    anywhere = rng.uniform((west, south), (east, north), (4 * people, 2))
    shapely.prepare(_state())
    kept = [part[shapely.contains_xy(_state(), part[:, 0], part[:, 1])] for part in (at_towns, anywhere)]
    rural = round(_RURAL * people)
    return np.concatenate([kept[0][: people - rural], kept[1][:rural]])


@lru_cache(maxsize=len(SHAPES) * len(PEOPLE))
def count_people(shape: str, people: int) -> AreaCounts:
    """Count the people in the regions of one shape."""
    return AreaCounts.from_xy(*homes(people).T, regions=regions_of(shape), bad_rows="drop")


def _list_known(releases: dict[str, AreaRelease], truths: dict[str, AreaCounts]) -> pd.DataFrame:
    """List by shape: the percentage of regions that are known well, of the people in them, and of empty regions released as occupied."""
    rows = []
    for shape, release in releases.items():
        truth = truths[shape].level_counts()[1]
        low, high = release.interval(1)
        known, empty = high - low < NARROW * release.count[release.nodes(1)], truth == 0
        shares = 100 * narrow_share(release, 1), 100 * float(truth[known].sum() / truth.sum()), 100 * float((low <= 0).mean())
        rows.append({"shape": shape, **dict(zip(_KNOWN, shares, strict=True)), "regions": len(truth), "empty": int(empty.sum())})
    return pd.DataFrame(rows)


def _draw_map(shape: str, release: AreaRelease, top: float) -> alt.LayerChart:
    """Draw the released counts of one kind of regions; the scale is the same on all maps."""
    outlines = release.regions.outlines(1)
    shapes = [] if outlines is None else shapely.simplify(outlines.to_numpy(), _SIMPLER if shape == COUNTIES else 0.0)
    in_km = [shapely.transform(polygon, lambda metres: np.round(metres / 1000, 1)) for polygon in shapes]
    rows = pd.DataFrame({"name": release.regions.names_of(1), "released": np.rint(release.count[release.nodes(1)])})
    names = {"name": "region", "released": "released (people)"}
    texts, shown = add_texts(rows, list(names)).to_dict("records"), ("released", "name shown", "released shown")
    features = [
        {"type": "Feature", "geometry": shapely.geometry.mapping(polygon), **{key: row[key] for key in shown}}
        for polygon, row in zip(in_km, texts, strict=True)
    ]
    scale = alt.Scale(type="sqrt", domain=[0, top], range=[0.03, 1.0], clamp=True, nice=False)
    legend = alt.Legend(title="people", orient="bottom", format=FORMAT, symbolType="square", symbolFillColor=FILL, symbolStrokeWidth=0)
    base = alt.Chart().project(type="identity", reflectY=True)
    opacity = alt.Opacity(field="released", type="quantitative", scale=scale, legend=legend)
    fill = base.mark_geoshape(fill=FILL, strokeWidth=0).encode(opacity=opacity, tooltip=tooltip(names))
    outlines_of_all = base.mark_geoshape(filled=False, stroke=GREY, strokeWidth=0.5, aria=False)
    which = f"{release.regions.size(1):,} {shape}"
    text = f"Map of released counts of {which}; the largest is {rows['released'].max():,.0f} people."
    return finish(alt.layer(fill, outlines_of_all, data={"values": features}), f"People in {which}", text, _MAP_HEIGHT)


def _draw_bars(known: pd.DataFrame) -> alt.LayerChart:
    """Draw the percentages of `_list_known` as bars, a group for each and a bar for each shape."""
    columns = list(_KNOWN)
    rows = known.melt("shape", columns, var_name="what", value_name="share")
    rows["label"] = [f"{shape} {share:.0f} %" for shape, share in zip(rows["shape"], rows["share"], strict=True)]
    names = {"what": "share", "shape": "shape", "share": "%"}
    scale, axis = alt.Scale(domain=[0, 125]), alt.Axis(values=[0, 25, 50, 75, 100])
    base = alt.Chart(add_texts(rows, list(names))).encode(
        x=alt.X(field="share", type="quantitative", title="share (%)", scale=scale, axis=axis),
        y=alt.Y(field="what", type="nominal", sort=columns, title=None, axis=alt.Axis(labelLimit=190)),
        yOffset=alt.YOffset(field="shape", type="nominal", sort=list(SHAPES)),
        tooltip=tooltip(names),
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(color=style_channel(alt.Color, "shape", SHAPES, COLORS, "square"))
    labels = base.mark_text(align="left", dx=4, fontSize=11, color=CAPTION, aria=False).encode(text=alt.Text(field="label", type="nominal"))
    text = "; ".join(f"{column}: {describe_values(known, 'shape', column)} %" for column in columns) + "."
    return finish(alt.layer(bars, labels), "How well regions are known", text, FRAME + 25 * len(rows))


@lru_cache(maxsize=1)
def _circles() -> tuple[Floats, tuple[Any, ...]]:
    """Return (c, 2) centres at made-up homes, and for each radius (c,) circles."""
    every = homes(int(PEOPLE[-1].replace(",", "")))
    centres = every[np.random.default_rng(_SEED + 1).choice(len(every), _CIRCLES, replace=False)]
    points = shapely.points(centres)
    return centres, tuple(shapely.buffer(points, 1000 * radius) for radius in RADII)


@lru_cache(maxsize=len(SHAPES))
def _shares(shape: str) -> tuple[Any, ...]:
    """Return for each radius the (c, n) shares of the regions that lie in the circles, as sparse matrices."""
    return tuple(scipy.sparse.csr_array(leaf_shares(regions_of(shape), circles)[0]) for circles in _circles()[1])


@lru_cache(maxsize=len(PEOPLE))
def true_answers(people: int) -> tuple[Integers, ...]:
    """Count for each radius the (c,) people in the circles."""
    tree, (centres, _) = scipy.spatial.cKDTree(homes(people)), _circles()
    return tuple(np.asarray(tree.query_ball_point(centres, 1000 * radius, return_length=True), np.int64) for radius in RADII)


def circle_errors(release: AreaRelease, truth: AreaCounts, shape: str, people: int) -> pd.DataFrame:
    """Compute the typical errors of circles, in percent of the people in an average circle.

    Args:
        release: the released counts.
        truth: the true counts of the same regions.
        shape: of the regions.
        people: how many there are.

    Returns:
        A row per radius: x (kilometres), y (by theory: noise, and cut regions), measured, and cut (without noise).
    """
    counts, noise, rows = truth.level_counts()[1], float(release.stddev(1)[0]), []
    for radius, share, true in zip(RADII, _shares(shape), true_answers(people), strict=True):
        cut = share @ counts - true
        theory = math.sqrt(float((cut**2).mean()) + noise**2 * float(share.power(2).sum(axis=1).mean()))
        measured = math.sqrt(float(((share @ release.count[release.nodes(1)] - true) ** 2).mean()))
        mean = float(true.mean()) / 100
        rows.append({"x": radius, "y": theory / mean, "measured": measured / mean, "cut": math.sqrt(float((cut**2).mean())) / mean})
    return pd.DataFrame(rows)


def _draw_circles(releases: dict[str, AreaRelease], truths: dict[str, AreaCounts], people: int) -> alt.LayerChart:
    """Draw the errors of circles by radius, a line for each shape."""
    tables = [circle_errors(release, truths[shape], shape, people).assign(series=shape) for shape, release in releases.items()]
    rows = pd.concat(tables, ignore_index=True)
    look = Look(
        "Error of people within a distance of a home",
        "distance (km)",
        "typical error (% of the people)",
        order=SHAPES,
        log_x=True,
        description="Lines are theory, dots this run.",
    )
    return curve_chart(rows[["x", "y", "series"]], look, dots=rows[["x", "series"]].assign(y=rows["measured"]))
