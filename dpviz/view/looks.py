"""Looks of the configurations of a study: colour, dashes and mark, which stay when other configurations come or go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from dpviz.view.charts import COLORS, DASHES, MARKS

__all__ = ["MOST_VARIANTS", "Look", "choose_looks", "look_of"]

MORE_COLORS = (*COLORS, "#8888ff", "#9900bb")
MORE_DASHES = (*DASHES, [6, 2, 6, 2, 1, 2], [10, 5])
HUES = (*MORE_COLORS, "#ccaa66", "#aa2200", "#aa0066", "#cc44aa", "#ee4466")
SHADES = ((0, 0.0), (0, 0.3), (255, 0.25))  # the hue itself, darker, lighter: a grey level, and its share in the mixture
MOST_VARIANTS = len(SHADES) * len(MORE_DASHES)  # so many variants of one hue differ in shade or dashes


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a configuration is drawn in every chart.

    Attributes:
        color: such as "#0b6e8f".
        dash: lengths of dashes and gaps in turn, in pixels.
        mark: name of the shape of its points.
    """

    color: str
    dash: tuple[int, ...]
    mark: str


def look_of(place: int, variant: int) -> Look:
    """Return the look of a variant of a mechanism; up to `MOST_VARIANTS` variants of one mechanism differ.

    Args:
        place: of the mechanism among all that are offered, from 0 on; it determines the hue.
        variant: number of the configuration among those of this mechanism, 0 for the mechanism as it is.

    >>> look_of(0, 0)
    Look(color='#0b6e8f', dash=(1, 0), mark='circle')
    >>> look_of(0, 1).color, look_of(1, 0).color
    ('#084d64', '#e69f00')
    """
    grey, share = SHADES[variant % len(SHADES)]
    dash = MORE_DASHES[(place + variant) % len(MORE_DASHES)]
    return Look(color=_mix(HUES[place % len(HUES)], grey, share), dash=tuple(dash), mark=MARKS[(place + variant) % len(MARKS)])


def choose_looks(numbers: Mapping[str, tuple[int, int]]) -> dict[str, Look]:
    """Choose a look for each configuration; no two have the same colour and dashes.

    Args:
        numbers: place and variant of each configuration by its name, as for `look_of`. Where two would look the same, which needs more
            mechanisms than hues, the later one takes the look of the next free variant.

    >>> looks = choose_looks({"a": (0, 0), "b": (0, 30), "c": (15, 0)})
    >>> len({(look.color, look.dash) for look in looks.values()})
    3
    """
    looks: dict[str, Look] = {}
    for name, (place, variant) in numbers.items():
        used = {(look.color, look.dash) for look in looks.values()}
        wanted = (look_of(place, other) for other in count(variant))
        looks[name] = next(look for look in wanted if (look.color, look.dash) not in used)
    return looks


def _mix(color: str, grey: int, share: float) -> str:
    parts = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part * (1 - share) + grey * share):02x}" for part in parts)
