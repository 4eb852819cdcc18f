"""The Areas page: data, mechanism and budget on the left; on the right, the counts of regions that would be released."""

from __future__ import annotations

from functools import partial

from dpviz.app.modes.page import show_in_mode
from dpviz.app.modes.sidebar import teach_controls
from dpviz.app.pages.areas.curate import PARTS
from dpviz.app.pages.areas.data import areas_controls
from dpviz.app.pages.areas.state import AREAS
from dpviz.app.pages.areas.teach import show_teach

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
