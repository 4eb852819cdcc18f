"""Lesson: how the error of large and small squares depends on the levels' shares of the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpviz.errors import SettingError
from dpviz.lessons.charts import COLORS, RED, Look, curve_chart
from dpviz.lessons.errors import ANYWHERE, PLACEMENTS, join_errors, split_draws, split_theory, with_leaf_share
from dpviz.lessons.lesson import Figure, Lesson, LessonFigure, ShareBar, draw_setting, epsilon_setting
from dpviz.mechanisms.base import setting
from dpviz.privacy.allocation import PUBLISHED, level_weights

HEIGHT, REPEATS = 5, 20
SIMPLE = ("uniform", "geometric", "leaf")
YOURS = "your split"


def _preset(weights: list[float]) -> tuple[float, ...]:
    return tuple(round(share, 6) for share in with_leaf_share(weights))


PRESETS = {name: _preset(level_weights(name, HEIGHT)) for name in SIMPLE}
PRESETS |= {published.title: _preset(published.weights(HEIGHT)) for published in PUBLISHED}
_ADDRESS_OF_SOURCE = {
    "Google mobility reports": "arXiv:2004.04145",
    "US Census 2020 (persons)": "The document is 2021-06-08-privacy-loss_budgetallocation.pdf on www2.census.gov, to which the Bureau's"
    " published code (DAS_2020_Redistricting_Production_Code) refers; its block groups are not the usual ones, but made for the algorithm",
}
SOURCES = {published.title: f"{published.source}. {_ADDRESS_OF_SOURCE[published.title]}." for published in PUBLISHED}


@dataclass(frozen=True, kw_only=True)
class Split(Lesson):
    """Expected errors of the simple splits and of the chosen one, and runs of the chosen one."""

    key: ClassVar[str] = "split"
    title: ClassVar[str] = "Where the budget goes in a tree"
    text: ClassVar[str] = (
        "A person is counted once on every level of a tree, so the levels share ε: what one level gets, the others lose. A larger"
        " share near the root makes large sums more accurate; a larger share near the leaves makes small sums more accurate."
    )
    task: ClassVar[str] = (
        "choose the preset *Leaf*, then drag a little back to the upper levels: how little of it lowers the error of large squares?"
    )
    question: ClassVar[str] = (
        "Six levels of a tree share one ε. The split *leaf* gives all of it to the single cells, so that larger areas are only sums of"
        " cells. For which squares, placed anywhere, is it better than the three splits drawn here?"
    )
    choices: ClassVar[tuple[str, ...]] = ("for all but the whole town", "for single cells only", "for none")
    right: ClassVar[int] = 0
    answer: ClassVar[str] = (
        "A square that lies anywhere cuts through large nodes, so that most of it is put together from small ones, and their accuracy"
        " decides. Only for all 1,024 cells the split of Google's reports is far better, ± 10.9 against ± 89.6 people. It turns for squares"
        " that are nodes of the tree: there *leaf* loses from 64 cells on."
    )
    in_class: ClassVar[str] = (
        "This stop is for those who will choose a split themselves. The wrong belief is that every level deserves its share. Compare"
        " *anywhere* with *nodes of the tree*: the same tree, and another winner. Then drag: a little for the upper levels costs single"
        " cells little and helps the whole town much."
    )

    share_bar: ClassVar[ShareBar] = ShareBar(
        setting="levels",
        caption="Share of ε per zoom level, whole town first: drag, or use the arrow keys.",
        parts=[f"zoom {depth}" for depth in range(HEIGHT + 1)],
        presets=PRESETS,
        presets_help="Published shares are spread evenly over the levels of this tree.",
    )

    levels: tuple[float, ...] = setting(
        PRESETS[PUBLISHED[0].title], "Shares", low=0, high=1, help="Share of ε per level, whole town first."
    )
    epsilon: float = epsilon_setting(0.5)
    squares: str = setting(ANYWHERE, "Squares", choices=PLACEMENTS, help="Anywhere in the town, or blocks that the tree itself counts.")
    least_squares: bool = setting(True, "Least squares", help="Make the levels agree in the most accurate way; free post-processing.")
    draw: int = draw_setting()

    def __post_init__(self) -> None:
        """Check the shares beyond their range: one per level, and at least one greater than 0."""
        super().__post_init__()
        if len(self.levels) != HEIGHT + 1 or not sum(self.levels) > 0:
            raise SettingError(f"Shares must be {HEIGHT + 1} numbers from 0 to 1, one of them greater than 0.")

    def show(self) -> LessonFigure:
        """Compute the figures for these settings."""
        shares, options = with_leaf_share(self.levels), {"least_squares": self.least_squares, "placement": self.squares}
        chosen = self.name_of_split()
        splits = {name: PRESETS[name] for name in SIMPLE} | {chosen: shares}
        lines = {name: split_theory(each, self.epsilon, self.least_squares, self.squares) for name, each in splits.items()}
        dots = join_errors({chosen: split_draws(shares, self.epsilon, options, self.draw, REPEATS)})
        look = Look(
            "Expected error by size of the question",
            "cells in the square",
            "typical error (people)",
            order=(chosen, *SIMPLE),
            colors=(RED, *COLORS[:1], *COLORS[2:]),
            log_x=True,
            log_y=True,
            height=400,
            description=f"Lines are theory, dots {REPEATS} runs of {chosen}.",
        )
        table = join_errors(lines)
        chart = curve_chart(table, look, dots=dots)
        others = replace(look, order=look.order[:-1], colors=look.colors[:-1])
        without_leaf = curve_chart(table[table["series"] != SIMPLE[-1]], others, dots=dots)
        return LessonFigure(
            asked=((without_leaf,),),
            rows=((chart,),),
            figures=_figures(lines, chosen),
            note=f"Lines: theory. Dots: {REPEATS} seeded runs of {chosen}. The finest level keeps at least 1 %, because"
            " a tree has no counts below its last measured level. Only noise is in these errors. Geometric shares grow by the cube root of"
            " 2 from level to level: without least squares they make the published bound on the error of any range query smallest (Cormode"
            " et al. 2012, Lemma 3).",
            source=SOURCES.get(chosen, ""),
        )

    def name_of_split(self) -> str:
        """Return the name of the chosen shares in the chart: that of who published them, or that they are the reader's."""
        preset = self.share_bar.preset_of(self.levels)
        return preset if preset in SOURCES else YOURS


def _figures(lines: dict[str, Any], chosen: str) -> tuple[Figure, ...]:
    errors, geometric = lines[chosen], lines["geometric"]
    sizes = (("One cell", 0), (f"{errors['cells'].iloc[3]:,} cells", 3), ("Whole town", -1))
    return tuple(
        Figure(
            name,
            f"± {errors['error'].iloc[row]:.3g}",
            f"Typical error of {chosen}, in people; the geometric split has {geometric['error'].iloc[row]:.3g}.",
        )
        for name, row in sizes
    )
