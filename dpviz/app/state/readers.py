"""Readers of single texts from outside, such as the parameters of a link. A stranger may have written them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpviz.app.state.values import FARTHEST, MOST_ASKED, MOST_LEVELS, MOST_REGIONS, MOST_SCALES, MOST_ZOOM
from dpviz.errors import DpvizError, SettingError
from dpviz.privacy.budget import exact
from dpviz.space.categories import MOST_SLOTS
from dpviz.view.basemap import MOST_NORTH, Bounds

LONGEST_TEXT = 4000
LONGEST_NAME = 120  # characters of the name of a file
Reader = Callable[[str], Any]
"""A function that reads one text; it raises ValueError, TypeError or OverflowError if the text is malformed."""
Camera = tuple[float, float, float]
"""Longitude and latitude in degrees, and zoom."""


def describe_refused(used: Mapping[str, object]) -> str:
    """Write which parameters of a link were not understood and what was used instead; "" if there are none.

    >>> describe_refused({"zoom": None, "epsilon": 0.5})
    'Not understood in this link: zoom and epsilon. Used instead: the usual zoom and epsilon 0.5.'

    Args:
        used: what was used instead, by the name of the parameter.
    """
    if not used:
        return ""
    texts = [f"{name} {value}" if type(value) in (str, int, float) and value != "" else f"the usual {name}" for name, value in used.items()]
    return f"Not understood in this link: {list_words(list(used))}. Used instead: {list_words(texts)}."


def list_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    >>> list_words(["low", "high", "steps"])
    'low, high and steps'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def choice_reader(*allowed: str) -> Reader:
    """Return a reader that takes only these texts."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError
        return text

    return read


def flag_reader(text: str) -> bool:
    """Read True or False, as `to_query` writes them."""
    if text not in ("True", "False"):
        raise ValueError
    return text == "True"


def number_reader(low: float, high: float, kind: type) -> Reader:
    """Return a reader of numbers of a type (`kind`) within a range, both ends included."""

    def read(text: str) -> Any:
        number = kind(text)
        if not (math.isfinite(number) and low <= number <= high):
            raise ValueError
        return number

    return read


def read_amount(text: object, label: str, low: float, high: float) -> float | Fraction:
    """Read a number as a person types it, exactly: 0.1, 1e-3 or 1/3. The result is a fraction only if no decimal number is the same.

    >>> read_amount("1e-3", "ε", 0.001, 100), read_amount(" 1/3 ", "ε", 0.001, 100), read_amount("1/2", "ε", 0.001, 100)
    (0.001, Fraction(1, 3), 0.5)

    Raises:
        SettingError: the text is no number, or the number is outside the range.
    """
    refusal = SettingError(f"{label} must be a number from {low:g} to {high:g}, such as 0.1, 1e-3 or 1/3.")
    try:
        number = exact(str(text).replace(" ", ""), label)
    except DpvizError:
        raise refusal from None
    if not exact(low, label) <= number <= exact(high, label):
        raise refusal
    return shortest(number)


def shortest(number: Fraction) -> float | Fraction:
    """Return a number as a decimal number if one is equal to it, else as the fraction that it is.

    >>> shortest(Fraction(1, 10)), shortest(Fraction(1, 3))
    (0.1, Fraction(1, 3))
    """
    return float(number) if exact(float(number), "The number") == number else number


def fraction_reader(low: float, high: float) -> Reader:
    """Return a reader of exact numbers within a range, as fractions."""
    return lambda text: exact(read_amount(text, "The number", low, high), "The number")


def read_settings(text: str) -> dict[str, Any]:
    """Read settings by name, from their JSON text."""
    settings = json.loads(text)
    if not isinstance(settings, dict):
        raise TypeError
    return {str(name): tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def read_scales(text: str) -> dict[str, float]:
    """Read the tops of colour scales of a link: at most `MOST_SCALES` finite numbers above 0, by name."""
    scales = {str(name): float(top) for name, top in read_settings(text).items()}
    if len(scales) > MOST_SCALES or not all(0 < top < math.inf for top in scales.values()):
        raise ValueError
    return scales


def read_file_name(text: str) -> str:
    """Read the name of a file of a link; it is only shown, and nothing is opened by it."""
    if not text.strip() or len(text) > LONGEST_NAME:
        raise ValueError
    return text


def read_camera(text: str) -> Camera:
    """Read the camera of a link; raise ValueError or TypeError if it does not look at the map."""
    numbers: Any = json.loads(text)
    longitude, latitude, zoom = (float(number) for number in numbers)
    if not (abs(longitude) <= 360 and abs(latitude) <= MOST_NORTH and 0 <= zoom <= MOST_ZOOM):
        raise ValueError
    return longitude, latitude, zoom


def read_box(text: str) -> Bounds:
    """Read the box of a link; raise ValueError or TypeError if it has no area, or reaches farther than any domain."""
    west, south, east, north = (float(side) for side in json.loads(text))
    if not (-FARTHEST <= west < east <= FARTHEST and -FARTHEST <= south < north <= FARTHEST):
        raise ValueError
    return west, south, east, north


def read_level(text: str) -> int | None:
    """Read a level of a link; "None" stands for the finest that is easy to read."""
    return None if text == str(None) else number_reader(1, MOST_LEVELS, int)(text)


def read_asked(text: str) -> tuple[int, ...]:
    """Read the regions of a link: at most `MOST_ASKED` different whole numbers."""
    numbers: Any = json.loads(text)
    asked = tuple(dict.fromkeys(number_reader(0, MOST_REGIONS, int)(str(number)) for number in numbers))
    if len(asked) > MOST_ASKED:
        raise ValueError
    return asked


def read_slots(text: str) -> tuple[int, int]:
    """Read first and last of the slots of a link; raise ValueError or TypeError if they are no range."""
    numbers: Any = json.loads(text)
    first, last = (number_reader(0, MOST_SLOTS - 1, int)(str(number)) for number in numbers)
    if last < first:
        raise ValueError
    return first, last
