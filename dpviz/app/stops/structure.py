"""Stop: structure against counts."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpviz.app.stops.parts import Figure, Knobs, Shown, Stop, draw_setting, epsilon_setting
from dpviz.lessons.charts import Look, curves, upright
from dpviz.lessons.maps import Cells, cell_map
from dpviz.lessons.structure import HEIGHT, ORDER, PARTS, PEOPLE, QUESTIONS, REPEATS, SHARES, TOTAL, by_share, of_quadtree, released
from dpviz.lessons.town import TIGHT, TWO, town_cells
from dpviz.mechanisms.base import setting
from dpviz.privacy.entropy import Entropy

QUADTREE = "quadtree"
PERCENTS = tuple(round(100 * share) for share in SHARES)


@dataclass(frozen=True, kw_only=True)
class Structure(Knobs):
    """Settings of the stop."""

    share: int = setting(35, "Share of ε for splits, %", choices=PERCENTS, help="The rest counts. The map shows the tree of this share.")
    epsilon: float = epsilon_setting(0.5)
    town: str = setting(TIGHT, "Town", choices=(TIGHT, TWO), help=f"{PEOPLE:,} made-up people.")
    draw: int = draw_setting()


def show(knobs: Structure) -> Shown:
    """Error by share, and the partitions of one share."""
    table = by_share(knobs.town, knobs.epsilon, knobs.draw)
    quad = of_quadtree(knobs.town, knobs.epsilon, knobs.draw)
    look = Look(
        title="Error by what the splits take",
        x="share of ε for splits (%)",
        y="typical error (people)",
        order=(*PARTS, QUADTREE),
        log_y=True,
        height=380,
    )
    flat = pd.DataFrame({"share": [PERCENTS[0], PERCENTS[-1]], "series": QUADTREE, "error": quad})
    rows = pd.concat([table, flat], ignore_index=True).rename(columns={"share": "x", "error": "y"})
    under = (upright(knobs.share, f"the map: {knobs.share} %", left=knobs.share > PERCENTS[-1] / 2),)
    errors = table[table["series"] == TOTAL].set_index("share")["error"]
    best = float(errors.index[int(errors.argmin())])
    return Shown(
        rows=((curves(rows, look, under=under), _map(knobs)),),
        figures=(
            Figure(label=f"Error at {knobs.share} %", value=f"± {errors[float(knobs.share)]:.3g}", help="Typical error, in people."),
            Figure(label="Least error", value=f"± {errors[best]:.3g}", help="Of the shares tried; it differs from draw to draw."),
            Figure(label="at a share of", value=f"{best:.0f} %", help="Where the least error was found in these draws."),
            Figure(label="Quadtree", value=f"± {quad:.3g}", help="Equal quarters need no data, so all of ε counts."),
        ),
        note=f"{QUESTIONS} random rectangles, {REPEATS} seeded draws per share, kd-trees of height {HEIGHT}. Noise and uniformity (taking"
        " people as evenly spread in every partition) are the two parts of the kd-tree's error. Choosing a share by looking at such a chart"
        " of private data would leak.",
    )


def _map(knobs: Structure) -> object:
    release = released(knobs.town, knobs.share / 100, knobs.epsilon, Entropy.seeded(knobs.draw))
    leaves = release.tree.leaves
    boxes = pd.DataFrame(release.tree.rectangles(leaves), columns=["x", "y", "x2", "y2"])
    area = (boxes["x2"] - boxes["x"]) * (boxes["y2"] - boxes["y"])
    boxes["value"] = (release.count[leaves].clip(min=0) / area).astype(float)
    column, row = town_cells(ORDER, PEOPLE, knobs.town)
    some = slice(None, None, 8)
    marks = pd.DataFrame({"x": column[some] + 0.5, "y": row[some] + 0.5, "what": "one person in eight", "shape": "dot"})
    cells = Cells(
        table=boxes,
        title=f"Partitions at {knobs.share} %",
        value="released people per cell",
        low=0.0,
        high=max(float(boxes["value"].max()), 1.0),
        told=f"{len(boxes)} partitions; {'small' if area.median() < 16 else 'large'} ones in the middle of the range.",
    )
    return cell_map(cells, marks=marks, outlines=boxes)


STRUCTURE = Stop(
    key="structure",
    title="Structure against counts",
    says="A tree that follows the data must pay for finding its splits, and what it pays is missing for its counts. With too small a share"
    " the splits fall nearly at random and crowds are smeared over large partitions; with too large a share the counts drown in noise.",
    task="move the share from 2 % to 95 % and watch the partitions; then choose *two crowds*: does following the data still pay?",
    knobs=Structure,
    show=show,
)
