"""Lesson: on a real map, noise puts people into the sea and the mountains; a threshold takes them out, and residents with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.lessons.charts import Look, curve_chart, vertical_line
from dpviz.lessons.city import DEEPEST, FINEST_SHOWN, city_release, merge_runs, side_km, square_layer, true_squares, typical_noise
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, draw_setting, epsilon_setting
from dpviz.lessons.real_map import LOS_ANGELES, real_map
from dpviz.mechanisms.base import setting
from dpviz.view.charts import GREY, to_hex
from dpviz.view.colors import FALSE_NEGATIVE, FALSE_POSITIVE

FALSE, MISSED, FOUND = "empty, but shown", "occupied, but hidden", "occupied and shown"
KINDS = (FALSE, MISSED, FOUND)
THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
SQUARE_COLORS = (to_hex(FALSE_POSITIVE), to_hex(FALSE_NEGATIVE), GREY)
SOMEBODY = "somebody lives there"
_STRENGTH = {FALSE: 0.95, MISSED: 0.8, FOUND: 0.35, SOMEBODY: 0.5}


@dataclass(frozen=True, kw_only=True)
class FalsePositives(Lesson):
    """Empty squares that are shown, and occupied ones that are hidden, by threshold and zoom level."""

    key: ClassVar[str] = "false_positives"
    title: ClassVar[str] = "Who lives in the sea?"
    text: ClassVar[str] = (
        "Noise makes no difference between the city and the sea: an empty square gets a count above zero as often as one below. A threshold"
        " hides small counts, those of empty squares and those of squares where few people live."
    )
    task: ClassVar[str] = (
        "raise the threshold until the sea is clean, and read how many people have vanished; then make the squares larger, and see what"
        " the same threshold costs there."
    )
    question: ClassVar[str] = (
        "Of 4,096 squares, 852 are empty: sea and mountains. Noise of ± 14 people is added to every square, and every square with a"
        " released count of at least 1 is drawn. How many of the empty squares are drawn as if somebody lived there?"
    )
    choices: ClassVar[tuple[str, ...]] = ("hardly any: noise is 0 on average", "about one in twenty", "nearly half")
    right: ClassVar[int] = 2
    answer: ClassVar[str] = (
        "401 of 852: noise goes up as often as down, and nobody can tell orange squares from grey ones. A threshold of 2 standard"
        " deviations (28 people) leaves 23 of them, but then 1,073 squares with somebody vanish, and 6.3 of 100 people with them. It"
        " turns with larger squares: at zoom level 4, squares of 4.4 km, the same threshold leaves 1 false positive, and 0.26 of 100"
        " people vanish."
    )
    in_class: ClassVar[str] = (
        "Let them find the coast on the first map and guess. The wrong belief is that noise which is 0 on average leaves empty places"
        " empty: it does on average, not in any single square. Then let two groups choose a threshold, one for the coast guard, who must"
        " not search empty water, and one for a vaccination team, who must miss nobody: there is no threshold for both. A released count"
        " never proves that somebody is there."
    )

    threshold: float = setting(
        0.0, "Threshold, in standard deviations", choices=THRESHOLDS, help="Smaller counts are hidden; 0 shows all that round to 1 or more."
    )
    zoom: int = setting(6, "Zoom level", low=2, high=FINEST_SHOWN, help="Each level cuts every square into four; 0 is the whole map.")
    epsilon: float = epsilon_setting(0.5)
    draw: int = draw_setting()

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        counts, kinds = count_kinds(self), kinds_of_squares(self)
        people, empty = true_squares(self.zoom), int((true_squares(self.zoom) == 0).sum())
        vanished = people[kinds == KINDS.index(MISSED)].sum() / people.sum()
        noise = f"{typical_noise(self.epsilon)[self.zoom]:.3g}"
        threshold, zoom = (self.threshold, THRESHOLDS[-1]), (self.zoom, DEEPEST)
        x = "threshold (standard deviations of the noise)"
        by_threshold = _errors_chart("Both errors by threshold", x, trade(self), threshold, height=LOS_ANGELES.height)
        title = "Both errors by zoom level, at this threshold"
        by_level = _errors_chart(title, "zoom level", by_zoom(self), zoom, log_y=True, height=280)
        first = (_map(self), by_threshold)
        return LessonFigure(
            rows=(first, (by_level,)),
            slide=(first,),
            asked=((_true_map(self.zoom),),),
            figures=(
                Figure("Shown from", f"{_whole(self):,} or more", f"People released for a square; its noise is ± {noise} people."),
                Figure("Shown, but empty", f"{counts[FALSE]:,} of {empty:,}", "False positives, of all squares with nobody."),
                Figure(
                    "Hidden, but occupied", f"{counts[MISSED]:,} of {people.size - empty:,}", "Missed squares, of all those with somebody."
                ),
                Figure("People who vanish", f"{100 * vanished:.2g} of 100", "Residents of the hidden squares."),
            ),
            note="Known here, because the residents are made up: nobody who sees only a release can tell orange squares from grey ones. The"
            " release is one quadtree; a threshold after it costs no budget.",
        )


def smallest_shown(threshold: float, zoom: int, epsilon: float) -> float:
    """Return the smallest released count that is shown, in people: `threshold` standard deviations, and at least 1 after rounding.

    >>> smallest_shown(0.0, 6, 0.5), round(smallest_shown(2.0, 6, 0.5))
    (0.5, 28)
    """
    return max(0.5, threshold * typical_noise(epsilon)[zoom])


def _whole(lesson: FalsePositives) -> int:
    """Return the smallest whole count that is shown."""
    return math.ceil(smallest_shown(lesson.threshold, lesson.zoom, lesson.epsilon))


def kinds_of_squares(lesson: FalsePositives) -> NDArray[np.int64]:
    """Return for each square of the zoom level its index in `KINDS`; -1 for empty squares that are hidden."""
    shown = city_release(lesson.epsilon, lesson.draw).blocks(lesson.zoom) >= smallest_shown(lesson.threshold, lesson.zoom, lesson.epsilon)
    occupied = true_squares(lesson.zoom) > 0
    return np.select([shown & ~occupied, occupied & ~shown, shown], [KINDS.index(kind) for kind in (FALSE, MISSED, FOUND)], -1)


def count_kinds(lesson: FalsePositives) -> dict[str, int]:
    """Count the squares of each of `KINDS`."""
    kinds = kinds_of_squares(lesson)
    return {kind: int((kinds == index).sum()) for index, kind in enumerate(KINDS)}


def _map(lesson: FalsePositives) -> alt.LayerChart:
    text = "; ".join(f"{kind}: {count:,} squares" for kind, count in count_kinds(lesson).items()) + "."
    title = f"Squares released with {_whole(lesson):,} or more"
    return _square_map(kinds_of_squares(lesson), lesson.zoom, (KINDS, SQUARE_COLORS), (title, text))


def _true_map(zoom: int) -> alt.LayerChart:
    """Draw which squares are occupied, as nobody outside knows it."""
    empty = true_squares(zoom) == 0
    texts = (f"Where somebody lives, in squares of {side_km(zoom):.1f} km", f"{int(empty.sum()):,} of {empty.size:,} squares are empty.")
    return _square_map(np.where(empty, -1, 0), zoom, ((SOMEBODY,), (GREY,)), texts)


def _square_map(kinds: NDArray[np.int64], zoom: int, looks: tuple[Sequence[str], Sequence[str]], texts: tuple[str, str]) -> alt.LayerChart:
    rows = merge_runs(kinds)
    what = np.array(looks[0])[rows["kind"]]
    rows = rows.drop(columns="kind").assign(what=what, strength=[_STRENGTH[each] for each in what])
    tooltips = [
        alt.Tooltip(field="what", type="nominal", title="square"),
        alt.Tooltip(field="wide", type="quantitative", title="squares in a row"),
    ]
    return real_map(LOS_ANGELES, [square_layer(rows, zoom, looks, tooltips)], *texts)


def trade(lesson: FalsePositives) -> pd.DataFrame:
    """Count false positives and missed squares at every threshold: columns x (standard deviations), y (squares) and series."""
    counts = {threshold: count_kinds(replace(lesson, threshold=threshold)) for threshold in THRESHOLDS}
    rows = [(threshold, counts[threshold][kind], kind) for kind in (FALSE, MISSED) for threshold in THRESHOLDS]
    return pd.DataFrame(rows, columns=["x", "y", "series"])


def by_zoom(lesson: FalsePositives) -> pd.DataFrame:
    """Count false positives and missed squares at every zoom level: columns x (level), y (squares, where there are any) and series."""
    rows = []
    for zoom in range(1, DEEPEST + 1):
        shown = city_release(lesson.epsilon, lesson.draw).blocks(zoom) >= smallest_shown(lesson.threshold, zoom, lesson.epsilon)
        occupied = true_squares(zoom) > 0
        rows += [(zoom, int((shown & ~occupied).sum()), FALSE), (zoom, int((occupied & ~shown).sum()), MISSED)]
    table = pd.DataFrame(rows, columns=["x", "y", "series"])
    return table[table["y"] > 0].reset_index(drop=True)


def _errors_chart(title: str, x: str, table: pd.DataFrame, on_map: tuple[float, float], **looks: Any) -> alt.LayerChart:
    """Draw both errors over x; `on_map` is what the map shows, and the largest x."""
    look = Look(title, x, "squares", order=(FALSE, MISSED), colors=SQUARE_COLORS, **looks)
    line = vertical_line(on_map[0], "on the map", left=on_map[0] > on_map[1] / 2)
    return curve_chart(table, look, dots=table, under=(line,))
