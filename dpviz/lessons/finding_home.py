"""Lesson: jittered points of one person lie around the home, which the discs around them give away; on a real map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import altair as alt
import numpy as np
import pandas as pd

from dpviz.arrays import Floats, Integers, Mask
from dpviz.data.points import PointCounts
from dpviz.evaluation.attacks.game import Success, count_wins, guess_bound
from dpviz.evaluation.attacks.homes import count_discs, guess_area, guess_home, home_log_odds
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.maps import FILL, Cells, mark_layers
from dpviz.lessons.real_map import Area, real_cell_map, real_map
from dpviz.lessons.success import SEEDS, Game, describe_success, success_chart
from dpviz.mechanisms.base import setting
from dpviz.mechanisms.points.moved import JitteredPoints
from dpviz.mechanisms.points.quadtree import Quadtree
from dpviz.privacy.budget import PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_laplace
from dpviz.release.point_release import PointRelease
from dpviz.samples.points import sample_xy
from dpviz.space.domain import Domain
from dpviz.space.grids import quadtree
from dpviz.space.lengths import cell_lengths
from dpviz.view.charts import GREY

DOMAIN = Domain(bounds=(-118.41, 33.975, -118.2367, 34.1193), crs="EPSG:4326", order=6)
"""A square of 16 km in Los Angeles, in cells of 250 m."""
AREA = Area.of(DOMAIN)
HEIGHT = 3
SIDE = 1 << HEIGHT
"""Areas of 2 km per side: a home is looked for among SIDE**2 of them."""
MOST_POINTS = 50
RADII = (0.5, 1.0, 2.0, 3.0, 5.0)
_WIDE = DOMAIN.side // SIDE
_CELLS, _AREAS = (np.stack(np.divmod(np.arange(side**2), side)[::-1], axis=1) for side in (DOMAIN.side, SIDE))
_AREA_OF_CELL = _CELLS[:, 1] // _WIDE * SIDE + _CELLS[:, 0] // _WIDE
_RUNS = 200


@dataclass(frozen=True, kw_only=True)
class FindingHome(Lesson):
    """Where a person can live by the jittered points, and by a private release of the same points."""

    key: ClassVar[str] = "finding_home"
    title: ClassVar[str] = "Blurred points from home"
    text: ClassVar[str] = (
        "Each of a person's points from home is moved at random by at most a fixed radius, so the home lies within that radius of every"
        " one of them: the discs around the points have ever less in common. The private release protects the *person* with all points:"
        " its noise grows with their number, and no attacker finds the home more often than ε allows."
    )
    task: ClassVar[str] = "add one point at a time; then find, for a radius of 5 km, how many points leave less than one square kilometre."
    question: ClassVar[str] = (
        "One point from home, moved at random by up to 2 km, leaves a disc of 15 square kilometres (with the squares at its edge) in which"
        " the home can be. Now the person shares 20 points from home, each moved by itself. How many square kilometres are left?"
    )
    choices: ClassVar[tuple[str, ...]] = ("15: each is moved by up to 2 km", "about 5", "less than 1")
    right: ClassVar[int] = 2
    answer: ClassVar[str] = (
        "0.563 square kilometres: the home is in *all* of the discs, and 20 discs have little in common. With a radius of 5 km the 20"
        " points leave 2.81, but 50 points leave 0.688."
    )
    in_class: ClassVar[str] = (
        "Begin with one point and add one at a time: the coloured area shrinks before their eyes. Expect the belief that 2 km of blur are"
        " 2 km of safety; the blur protects a single point, and people have many. Then ask what is published instead, below: counts in"
        " which the person's points are hidden *together*, as the unit is the person. In the last chart even the best attack on these"
        " counts stays below the line at ε, which none can pass."
    )

    points: int = setting(
        1, "Points of the person", low=1, high=MOST_POINTS, help="All from home, each moved by itself. The release counts them all."
    )
    radius: float = setting(2.0, "Radius of the jitter, km", choices=RADII, help="Each point moves evenly within a disc of this radius.")
    epsilon: float = epsilon_setting(1.0, "Of the private release, for the person with all points.")
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        home = choose_home(self.draw)
        moved = jitter(home, MOST_POINTS, self.radius, Entropy.seeded(self.draw))[: self.points]  # one point more keeps those before it
        discs = count_discs(moved, _CELLS, 1000 * self.radius, cell_size())
        possible = discs == discs.max()
        release = release_privately(home, self.points, self.epsilon, self.draw)
        belief = believe(release, self.points, self.epsilon)
        today, private = play_jittered(self.points, self.radius), play_private(self.points, self.epsilon)
        bound = guess_bound(SIDE**2, self.epsilon)
        game = Game(
            title="In which of 64 areas is the home?",
            contrast=(f"{self.points} jittered point{'s' * (self.points != 1)} (NOT PRIVATE)", today),
            private=(f"private counts, ε = {self.epsilon:g}", private),
            blind=1 / SIDE**2,
            bound=bound,
            epsilon=f"ε = {self.epsilon:g}",
        )
        left = possible.sum() * np.prod(cell_size()) / 1e6
        jittered = _jittered_map(home, moved, possible, self.radius)
        help_private = f"The same people, {_RUNS} releases for each. At most {100 * bound:.3g} % by ε."
        return LessonFigure(
            asked=((jittered,),),
            rows=((jittered, _belief_map(home, belief, self.epsilon)), (_release_map(release), success_chart(game))),
            figures=(
                Figure("Where home can be", f"{left:.3g} km²", "What all discs around the jittered points share; of 256 km²."),
                Figure("Belief: private", f"{100 * belief[area_of(home)]:.3g} %", "In the true area, after the release; 1.56 % blind."),
                Figure("Games won: jittered", describe_success(today), f"The right one of 64 areas, over {SEEDS} people."),
                Figure("Games won: private", describe_success(private), help_private),
            ),
            note="Ring: the home. The game: the home is in any of 64 areas of 2 km, equally likely. Against private counts the attacker"
            " knows *everybody* else and that the person is there with all points, weighs the counts of all levels, and says the likeliest"
            " area.",
        )


@lru_cache(maxsize=1)
def cell_size() -> tuple[float, float]:
    """Return the width and height of a cell in metres, at the middle of the map."""
    widths, heights = cell_lengths(DOMAIN, np.array([DOMAIN.side // 2]))
    return float(widths[0]), float(heights[0])


def choose_home(seed: int) -> tuple[int, int]:
    """Return column and row of the home of a made-up person: any cell, equally likely."""
    column, row = np.random.default_rng((17, seed)).integers(0, DOMAIN.side, 2)
    return int(column), int(row)


def area_of(home: tuple[int, int]) -> int:
    """Return the area of a home: the row of areas times `SIDE`, plus the column."""
    return int(_AREA_OF_CELL[home[1] * DOMAIN.side + home[0]])


def jitter(home: tuple[int, int], points: int, radius: float, entropy: Entropy) -> Integers:
    """Move each of a person's points at home by at most `radius` km: (points, 2) columns and rows. NOT PRIVATE."""
    own = PointCounts.from_xy(*_at_home(home, points), domain=DOMAIN)
    return np.stack(JitteredPoints(radius=1000 * radius).move(own, entropy), axis=1).astype(np.int64)


def _at_home(home: tuple[int, int], points: int) -> tuple[Floats, Floats]:
    west, south = DOMAIN.coordinates(np.array([[*home, home[0] + 1, home[1] + 1]]))[0, :2]
    width, height = DOMAIN.cell_size
    return np.full(points, west + width / 2), np.full(points, south + height / 2)


@lru_cache(maxsize=1)
def _residents() -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of everybody else, one point each: made-up residents of the square."""
    x, y = sample_xy("la_residents")
    west, south, east, north = DOMAIN.bounds
    inside = (west < x) & (x < east) & (south < y) & (y < north)
    return x[inside], y[inside]


def release_privately(home: tuple[int, int], points: int, epsilon: float, seed: int) -> PointRelease:
    """Release everybody's points with the person as unit, who has at most `points` points; the quadtree spends epsilon on its levels."""
    others = _residents()
    x, y = (np.concatenate([known, own]) for known, own in zip(others, _at_home(home, points), strict=True))
    person = np.concatenate([np.arange(1, len(others[0]) + 1), np.zeros(points, np.int64)])
    counts = PointCounts.from_xy(x, y, domain=DOMAIN, person=person, contributions=points, key=b"a lesson")
    return Quadtree(height=HEIGHT).release(counts, PureBudget(epsilon), Entropy.seeded(seed))


@lru_cache(maxsize=1)
def levels() -> tuple[list[Integers], list[Integers], list[float]]:
    """Return the tables of the release: for each level the node of each area, the true counts of others, and the share of epsilon."""
    tree = quadtree(DOMAIN, HEIGHT)
    others = PointCounts.from_xy(*_residents(), domain=DOMAIN)
    counts = tree.sums(others.column, others.row, others.count)
    corner = tree.rectangles(tree.leaves)[:, :2] // _WIDE
    node = np.empty(SIDE**2, np.int64)
    node[corner[:, 1] * SIDE + corner[:, 0]] = tree.leaves
    tables: list[Integers] = []
    known: list[Integers] = []
    for depth in range(HEIGHT, -1, -1):
        nodes = tree.at_depth(depth)
        tables.insert(0, node - nodes.start)
        known.insert(0, counts[nodes])
        node = tree.parent[node].astype(np.int64)
    weights, _ = Quadtree(height=HEIGHT).measured_weights(DOMAIN)
    return tables, known, [weight / sum(weights) for weight in weights]


def believe(release: PointRelease, points: int, epsilon: float) -> Floats:
    """Return (areas,) the belief that the home is in each area, after a private release; equal before."""
    tables, known, shares = levels()
    noisy = [release.noisy[release.tree.at_depth(depth)] for depth in range(HEIGHT + 1)]
    seen = [np.where(np.isnan(level), others, level).astype(np.int64) for level, others in zip(noisy, known, strict=True)]
    odds = home_log_odds(seen, known, tables, [share * epsilon for share in shares], points)
    weights = np.exp(odds - odds.max())
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=32)
def play_jittered(points: int, radius: float) -> Success:
    """Play the game on jittered points of `SEEDS` people."""
    said, truth = np.empty(SEEDS, np.int64), np.empty(SEEDS, np.int64)
    for seed in range(SEEDS):
        home = choose_home(seed + 1)
        moved = jitter(home, points, radius, Entropy.seeded(seed + 1))
        said[seed] = guess_home(moved, _CELLS, _AREA_OF_CELL, 1000 * radius, cell_size())
        truth[seed] = area_of(home)
    return count_wins(said, truth)


@lru_cache(maxsize=32)
def play_private(points: int, epsilon: float, runs: int = _RUNS, seed: int = 18) -> Success:
    """Play the game on private releases of the same people: each level of the quadtree with noise of its own, `runs` times per person."""
    tables, known, shares = levels()
    homes = np.array([choose_home(seed + 1) for seed in range(SEEDS)])
    truth = np.repeat(_AREA_OF_CELL[homes[:, 1] * DOMAIN.side + homes[:, 0]], runs)
    stream, noisy = Entropy.seeded(seed), []
    for table, others, share in zip(tables, known, shares, strict=True):
        counts = np.repeat(others[None, :], len(truth), axis=0)
        counts[np.arange(len(truth)), table[truth]] += points
        if share:
            budget = PureBudget(round(share * epsilon, 9))
            counts = discrete_laplace(counts.ravel(), budget, stream, points).reshape(counts.shape)
        noisy.append(counts)
    odds = home_log_odds(noisy, known, tables, [share * epsilon for share in shares], points)
    return count_wins(guess_area(odds, np.random.default_rng(seed).random(odds.shape)), truth)


def _edges(cells: Integers, wide: int) -> pd.DataFrame:
    corners = cells * wide
    return AREA.edges(DOMAIN.coordinates(np.concatenate([corners, corners + wide], axis=1)))


def _home_mark(home: tuple[int, int]) -> pd.DataFrame:
    x, y = AREA.to_km(*_at_home(home, 1))
    return pd.DataFrame({"x": x, "y": y, "what": "home", "shape": "circle"})


def _jittered_map(home: tuple[int, int], moved: Integers, possible: Mask, radius: float) -> object:
    """Draw the jittered points, the discs around them, and what all discs share."""
    middle = _edges(moved, 1)
    dots = pd.DataFrame({"x": (middle["x"] + middle["x2"]) / 2, "y": (middle["y"] + middle["y2"]) / 2})
    marks = pd.concat([dots.assign(what="a jittered point", shape="dot"), _home_mark(home)], ignore_index=True)
    shared = alt.Chart(_edges(_CELLS[possible], 1)).mark_rect(color=FILL, strokeWidth=0).encode(**AREA.channels(edges=True))
    whole = alt.Chart(_edges(np.zeros((1, 2), np.int64), DOMAIN.side)).mark_rect(filled=False, stroke=GREY, aria=False)
    circles = alt.Chart(_circles(dots, radius)).mark_line(stroke=GREY, strokeWidth=0.7, opacity=0.8, clip=True, aria=False)
    in_order = {"detail": alt.Detail(field="disc", type="nominal"), "order": alt.Order(field="step", type="quantitative")}
    layers = [shared, whole.encode(**AREA.channels(edges=True)), circles.encode(**AREA.channels(), **in_order)]
    title = f"Home is in all discs of {radius:g} km"
    description = f"The home can be in {possible.sum()} of {len(possible):,} cells of 250 m."
    return real_map(AREA, [*layers, *mark_layers(marks, AREA.channels())], title, description)


def _circles(dots: pd.DataFrame, radius: float, corners: int = 36) -> pd.DataFrame:
    """Return the corners of a circle around each point: columns x, y (km), disc and step."""
    angle = np.linspace(0, 2 * np.pi, corners + 1)
    x, y = (np.add.outer(dots[name].to_numpy(), radius * turn(angle)).ravel() for name, turn in (("x", np.cos), ("y", np.sin)))
    disc, step = np.divmod(np.arange(len(x)), corners + 1)
    return pd.DataFrame({"x": x.round(2), "y": y.round(2), "disc": disc, "step": step})


def _belief_map(home: tuple[int, int], belief: Floats, epsilon: float) -> object:
    cells = _edges(_AREAS, _WIDE).assign(value=100 * belief)
    description = f"The likeliest of 64 areas is believed with {100 * belief.max():.3g} %."
    title = f"After the private release, ε = {epsilon:g}"
    shown = Cells(table=cells, title=title, value="belief (%)", low=0.1, high=100.0, description=description)
    return real_cell_map(AREA, shown, marks=_home_mark(home))


def _release_map(release: PointRelease) -> object:
    corner = release.tree.rectangles(release.tree.leaves)[:, :2] // _WIDE
    counts = release.count[release.tree.leaves][np.argsort(corner[:, 1] * SIDE + corner[:, 0])]
    cells = _edges(_AREAS, _WIDE).assign(value=np.maximum(counts, 0.0))
    description = f"Noisy counts of 64 areas, from {counts.min():.0f} to {counts.max():.0f} points."
    high, title = float(max(counts.max(), 1.0)), "What is released: points per area"
    return real_cell_map(AREA, Cells(table=cells, title=title, value="points", low=0.0, high=high, description=description))
