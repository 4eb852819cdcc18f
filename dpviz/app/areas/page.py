"""The Areas page: data, mechanism and budget on the left; on the right, the counts of regions that would be released."""

from __future__ import annotations

from functools import partial

from dpviz.app.areas.curate import PARTS
from dpviz.app.areas.data import areas_controls
from dpviz.app.areas.state import AREAS
from dpviz.app.areas.teach import show_teach
from dpviz.app.sidebar import teach_controls
from dpviz.app.two_modes import show_in_mode

_PROTECTED = {
    "record": "**Protected:** adding or removing one record, or replacing it by another.",
    "person": "**Protected:** adding or removing one person, with all records that count, or replacing one by another.",
    "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
}
_NOT_PROTECTED = (
    "**Not protected:** the regions and their levels, the mechanism and its settings, and the total where neighbours are *bounded*."
)


def areas_page() -> None:
    """Draw the page."""
    controls = partial(teach_controls, AREAS, areas_controls, lambda data: data.counts.regions)
    show_in_mode(AREAS, controls, show_teach, PARTS, _PROTECTED, _NOT_PROTECTED)
