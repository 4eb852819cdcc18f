"""What Curate shows before payment depends on header, types, public files, answers and earlier releases: never on rows."""

import pytest

from dpviz.app.session.cached import digest_of
from dpviz.app.state.parts import Box, ChosenCategories, ChosenRegions
from tests.app.parts import files_with, page_with
from tests.app.seen import fine, good
from tests.app.start import AREA_REGIONS, areas_uploaded, pages_app, trips_uploaded, uploaded
from tests.app.walk import name_dataset, say_how_many


def in_squares(rows):
    """The Areas page with records in small squares, of which none is useful."""
    content = b"lon,lat\n" + rows
    parts = {"regions": ChosenRegions(squares=(2, 7)), "grid": Box(west=4.5, south=45.5, east=5.1, north=46.1, crs="EPSG:4326")}
    files = files_with("homes.csv", content, whom="each", crs="EPSG:4326")
    page = page_with("areas", mode="Curate", source="upload", uploaded=files, regions_from="Squares", **parts)
    return good(pages_app("areas", {}, {"areas config": page, "areas uploaded": ("homes.csv", content)}))


def by_hour(rows):
    """The Areas page with visits by hour, of which at most one of a person counts in each."""
    content = b"tract,at,visitor\n" + rows
    said = {"person": "visitor", "contributions": 3, "per_slot": 1, "region": "tract", "slot": "at", "count": "none"}
    regions = ChosenRegions(file="regions.csv", levels=("district", "tract"), digest=digest_of(AREA_REGIONS))
    parts = {"counted_by": "Hour", "categories": ChosenCategories(zone="Europe/Berlin"), "mechanism": "cross_tree"}
    files = files_with("visits.csv", content, whom="person", **said)
    page = page_with("areas", mode="Curate", source="upload", uploaded=files, regions=regions, **parts)
    state = {"areas config": page, "areas uploaded": ("visits.csv", content), "areas regions uploaded": ("regions.csv", AREA_REGIONS)}
    return good(pages_app("areas", {}, state))


PAGES = {
    "points": (
        lambda rows: uploaded(b"lon,lat,note\n" + rows, "homes.csv"),
        b"-118.2,34.1,secret\n-80.25,25.5,hidden\n",
        b"-90.5,39.75,a\n" * 40,
    ),
    "trips": (
        lambda rows: trips_uploaded(trips=("trips.csv", b"origin,dest,count,rider\n" + rows)),
        b"A1,A2,500,r1\nB1,B1,900,r2\n",
        b"A2,B1,7,r9\n" * 40,
    ),
    "areas": (lambda rows: areas_uploaded(points=b"tract,visitor\n" + rows), b"A1,v1\nB2,v2\n", b"B1,w\n" * 40),
    "areas by hour": (by_hour, b"A1,2026-11-29 08:10,v1\nB2,2026-11-29 17:05,v2\n", b"B1,2026-01-01T00:00:00+01:00,w\n" * 40),
    "squares": (in_squares, b"4.75,45.75\n", b"5.0,46.0\n4.6,45.6\n" * 20),
}


def sent(app):
    """The bytes of all that a page sends to the browser: sentences, fields, choices, keys in the markup, maps."""

    def walk(node):
        if hasattr(node, "proto") and node.proto is not None:
            yield type(node).__name__, node.proto.SerializeToString(deterministic=True)
        for child in getattr(node, "children", {}).values():
            yield from walk(child)

    return list(walk(app._tree))


@pytest.mark.parametrize(("upload", "rows", "others"), PAGES.values(), ids=PAGES)
def test_two_files_with_the_same_header_are_the_same_to_the_browser(upload, rows, others):
    one, other = (fine(say_how_many(name_dataset(upload(each), "Homes"), 20)) for each in (rows, others))
    assert len(sent(one)) > 100
    assert sent(one) == sent(other)
    pressed = 0
    for kind in ("suggest size", "suggest level", "suggest epsilon", "suggest both"):
        for app in (one, other):
            for suggestion in [button for button in app.button if str(button.key).startswith(kind)]:
                pressed += 1
                fine(suggestion.click().run())
        assert sent(one) == sent(other)
    assert pressed % 2 == 0
    assert pressed > 0
