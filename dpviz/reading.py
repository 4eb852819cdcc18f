"""`dv.reading`: files of text described and looked at before they are read, and the limits of reading."""

from dpviz.data.reading.categories import read_categories
from dpviz.data.reading.outline import read_outline
from dpviz.data.reading.points import inspect_points
from dpviz.data.reading.regions import inspect_regions
from dpviz.data.reading.safety import Limits
from dpviz.data.reading.text_format import TextFormat, detect_text_format
from dpviz.data.reading.trips import inspect_trips

__all__ = [
    "Limits",
    "TextFormat",
    "detect_text_format",
    "inspect_points",
    "inspect_regions",
    "inspect_trips",
    "read_categories",
    "read_outline",
]
