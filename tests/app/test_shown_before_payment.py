"""What Curate shows before payment depends on header, types, public files, answers and earlier releases: never on rows."""

import pytest

from tests.app.seen import fine, scenes
from tests.app.start import areas_uploaded, trips_uploaded, uploaded
from tests.app.walk import name_dataset, say_how_many

FIELDS = ("text_input", "number_input", "selectbox", "select_slider", "slider", "checkbox", "toggle", "button")
SENTENCES = ("markdown", "caption", "info", "warning", "error", "success", "code")
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
}


def shown(app):
    """All that is said, every field with its choices and value, every button and every map of a page."""
    fields = [
        (part.type, part.label, getattr(part, "value", None), getattr(part, "options", None))
        for kind in FIELDS
        for part in getattr(app, kind)
    ]
    return [part.value for kind in SENTENCES for part in getattr(app, kind)], fields, scenes(app)


@pytest.mark.parametrize(("upload", "rows", "others"), PAGES.values(), ids=PAGES)
def test_two_files_with_the_same_header_look_the_same(upload, rows, others):
    one, other = (fine(say_how_many(name_dataset(upload(each), "Homes"), 2000)) for each in (rows, others))
    assert shown(one) == shown(other)
    for app in (one, other):
        for suggestion in [button for button in app.button if str(button.key).startswith("suggest epsilon")]:
            fine(suggestion.click().run())
    assert shown(one) == shown(other)
