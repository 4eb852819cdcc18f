"""How configurations and workloads are called on screen."""

from __future__ import annotations

from dpviz.app.compare_state import CompareData, Pick
from dpviz.data.flows import Flows

ABOUT = {
    "random": "random boxes",
    "small": "blocks of 0.1 % of the area",
    "medium": "blocks of 1 % of the area",
    "large": "blocks of 10 % of the area",
}


def of_points(data: CompareData) -> bool:
    """Whether the data are points."""
    return not isinstance(data.data, Flows)


def workload_words(name: str, data: CompareData) -> str:
    """A workload as it is written on screen."""
    if name.startswith("size "):
        what = "blocks" if of_points(data) else "pairs"
        return f"{what} with {size_words(name)} {data.unit} in truth"
    if not of_points(data):
        return f"pairs of level {name}"
    return ABOUT.get(name, f"all blocks of {name.replace('zoom', 'zoom level')}")


def size_words(name: str) -> str:
    """A group of true counts.

    >>> size_words("size 1000-9999")
    '1,000–9,999'
    """
    return "–".join(f"{int(end):,}" for end in name.removeprefix("size ").split("-"))


def pick_words(pick: Pick) -> str:
    """A configuration with its budget."""
    return f"{pick[0]}, ε {pick[1]:g}"


def usual_workload(names: list[str]) -> str:
    """What is shown first: random boxes, or the finest level."""
    plain = [name for name in names if not name.startswith("size ")]
    return "random" if "random" in names else (plain or names)[-1]


__all__ = ["ABOUT", "of_points", "pick_words", "size_words", "usual_workload", "workload_words"]
