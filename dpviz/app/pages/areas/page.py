"""The Areas page: its data, its words, and the counts of regions that would be released."""

from __future__ import annotations

from dpviz.app.modes.family_page import FamilyPage
from dpviz.app.pages.areas.curate import coarser_cells, count_useful, list_levels, show_declared, show_release
from dpviz.app.pages.areas.data import Declared, areas_controls
from dpviz.app.pages.areas.state import RELEASES
from dpviz.app.pages.areas.teach import describe_idle, make_teach
from dpviz.families import AREA_FAMILY

PAGE = FamilyPage(
    releases=RELEASES,
    controls=areas_controls,
    nothing=Declared(),
    frame_of=lambda declared: declared.public,
    protected={
        "record": "**Protected:** adding or removing one record, or replacing it by another.",
        "person": "**Protected:** adding or removing one person, with all records that count, or replacing one by another.",
        "": "**Protected:** adding or removing one record (or one person, where a person column is given).",
    },
    not_protected="**Not protected:** the regions and their levels, the mechanism and its settings, and the total where neighbours are"
    " *bounded*.",
    weigh=lambda what: float(what.release.numbers),
    room=2_000_000,  # regions, or pairs of a region and a category
    idle=describe_idle,
    teach=make_teach,
    raw=", before least squares makes the levels agree.",
    streets="street map of areas",
    counts_of=Declared.frame,
    levels_of=list_levels,
    coarser_of=coarser_cells,
    unit_of=lambda data: AREA_FAMILY.counted if data is None else data.unit,
    show_declared=show_declared,
    show_release=show_release,
    count_useful=count_useful,
    promise_of=lambda declared: declared.promise,
)
