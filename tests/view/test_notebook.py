"""What notebooks show: everything of use, nothing private, nothing that runs or loads."""

import doctest
import re
import sys
from functools import cache
from importlib.resources import files

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from matplotlib.figure import Figure

import dpviz as dv
from dpviz.space.mask import CellMask
from dpviz.view.notebook import CURATOR_ONLY
from tests.hostile import NAMES
from tests.release_cases import (
    area_release,
    areas_on,
    hidden_release,
    point_release,
    points_of,
    regions_with_shapes,
    trip_counts_on,
)
from tests.trip_cases import regular, trip_counts_of

POINTS = points_of(400)
PLAN = 'ENGCRS["plan",EDATUM["corner"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'


def regions_on_a_plan():
    """Two rooms of a building, which have no place on the globe."""
    rooms = geopandas.GeoSeries([shapely.box(x, 0, x + 1, 1) for x in (0, 1)], crs=PLAN)
    return dv.Regions.from_polygons(rooms)


@cache
def trip_release():
    """Trips between regions with shapes."""
    return dv.TopDown().release(trip_counts_on(regions_with_shapes()), dv.ApproxBudget(5, "1e-6"), dv.Entropy.system())


STUDY = {"data": POINTS, "public": True, "mechanisms": {"tree": dv.Quadtree(height=2)}, "epsilons": (1,)}
SHOWN = {
    "domain": lambda: POINTS.domain,
    "plane": lambda: dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=3),
    "mask": lambda: dv.Domain(bounds=(0, 0, 8, 8), crs=None, order=3, mask=CellMask.from_masked_cells([1, 2], [3, 3], order=3)),
    "pole": lambda: dv.Domain(bounds=(-4e6, -4e6, 4e6, 4e6), crs="EPSG:3413", order=3),
    "plan of a building": lambda: dv.Domain(bounds=(0, 0, 100, 100), crs=PLAN, order=3),
    "regions": regions_with_shapes,
    "regions on a plan without place": lambda: regions_on_a_plan(),
    "regions without shapes": lambda: regular(2, 2),
    "counts": lambda: POINTS,
    "trips": lambda: trip_counts_on(regions_with_shapes()),
    "areas": lambda: areas_on(regions_with_shapes()),
    "release": point_release,
    "release on a plane": lambda: point_release(crs=None),
    "release of trips": trip_release,
    "release of trips without shapes": lambda: dv.TopDown().release(
        trip_counts_of(regular(2, 2), {(0, 1): 50}), dv.ApproxBudget(5, "1e-6"), dv.Entropy.seeded(1)
    ),
    "release of trips on a plan without place": lambda: dv.TopDown().release(
        trip_counts_of(regions_on_a_plan(), {(0, 1): 50}), dv.ApproxBudget(5, "1e-6"), dv.Entropy.seeded(1)
    ),
    "release of areas": area_release,
    "release with hidden numbers": hidden_release,
    "receipt": lambda: point_release().receipt,
    "evaluation": lambda: dv.evaluate(point_release(), POINTS),
    "evaluation of trips": lambda: dv.evaluate(trip_release(), trip_counts_on(regions_with_shapes())),
    "evaluation of areas": lambda: dv.evaluate(area_release(), areas_on(regions_with_shapes())),
    "study": lambda: dv.Study(**STUDY),
}


def assert_quiet(html):
    """It runs nothing and asks nothing of anybody; gradients are its own."""
    assert not re.search(r"<(script|iframe|img|link|object|embed|base|form)|\bon\w+=|@import|https?:|//", html)
    assert all(address.startswith("#") for address in re.findall(r"(?:url\(|href=\"?)([^)\"]*)", html))


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_runs_nothing_and_loads_nothing(name):
    html = SHOWN[name]()._repr_html_()
    assert_quiet(html)
    assert len(re.findall(r' id="([^"]*)"', html)) == len(set(re.findall(r' id="([^"]*)"', html)))
    assert (CURATOR_ONLY in html) == name.startswith("evaluation")
    assert ("<svg" in html) == (name not in ("receipt", "study") and "evaluation" not in name and "without" not in name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (points_of(400), points_of(7)),
        (trip_counts_on(regions_with_shapes()), trip_counts_of(regions_with_shapes(), {(0, 1): 1})),
        (areas_on(regions_with_shapes()), dv.AreaCounts.from_counts([1, 0, 0, 5], regions=regions_with_shapes())),
    ],
    ids=["points", "trips", "areas"],
)
def test_private_counts_are_shown_alike_whatever_was_counted(one, other):
    assert one._repr_html_() == other._repr_html_()


def test_names_are_shown_as_they_are_and_never_as_html():
    for start in range(0, len(NAMES) - 3, 4):
        regions = regions_with_shapes(NAMES[start : start + 4])
        for shown in (regions, dv.FlatAreas().release(areas_on(regions), dv.PureBudget(1), dv.Entropy.seeded(1))):
            html = shown._repr_html_()
            assert_quiet(re.sub(r"<title>[^<>]*</title>", "", html))
            assert html.count("<style>") == html.count("</style>") == 1


def test_two_outputs_in_one_notebook_share_no_name():
    one, other = (set(re.findall(r' id="([^"]*)"', shown._repr_html_())) for shown in (trip_release(), area_release()))
    assert one
    assert other
    assert one.isdisjoint(other)


def test_a_simulation_says_so_and_a_publication_does_not():
    seeded = dv.Quadtree(height=2).release(POINTS, dv.PureBudget(1), dv.Entropy.seeded(1))
    assert "SIMULATION: not private. Not for publication." in seeded._repr_html_()
    assert "SIMULATION" not in point_release()._repr_html_()


def show(value):
    """What a notebook stores of a value: by IPython's own formatter if it is installed, else as that would do it."""
    try:
        from IPython.core.formatters import DisplayFormatter  # noqa: PLC0415  (not among what tests need)
    except ModuleNotFoundError:
        return {"text/html": value._repr_html_()} if hasattr(value, "_repr_html_") else {"text/plain": repr(value)}
    return DisplayFormatter().format(value)[0]


def test_the_page_of_help_runs_as_a_notebook():
    """Each example is a cell; what its last line gives is displayed."""
    names, outputs = {}, {}
    for cell in doctest.DocTestParser().get_examples((files("dpviz") / "docs" / "notebooks.md").read_text("utf-8")):
        try:
            code = compile(cell.source, "cell", "eval")
        except SyntaxError:
            exec(cell.source, names)  # noqa: S102  (our own page)
        else:
            outputs[cell.source.split("#")[0].strip()] = show(eval(code, names))  # noqa: S307
    assert [source for source, output in outputs.items() if "<svg" in output.get("text/html", "")] == ["points.domain", "points", "release"]
    assert "<iframe" in outputs["page"]["text/html"]
    for name in ("points.domain", "points", "release"):
        assert_quiet(outputs[name]["text/html"])


def test_a_missing_library_is_named_with_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "dpviz.view.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(dv.SettingError, match=r'needs matplotlib.*pip install "dpviz\[plot\]"'):
        point_release().plot()


@pytest.mark.parametrize("release", [point_release, lambda: point_release(crs=None), trip_release, area_release, hidden_release])
def test_pictures_show_all_that_is_drawn_and_change_no_number(release):
    axes = release().plot(level=1)
    assert axes.collections
    assert axes.get_title().startswith(release().mechanism)
    axes.figure.canvas.draw()
    axes.figure.clear()


def test_a_picture_is_drawn_into_axes_that_are_given():
    axes = Figure().subplots()
    assert area_release().plot("town", ax=axes) is axes
    np.testing.assert_allclose(axes.collections[-1].get_array(), area_release().count[area_release().nodes(2)] / shares_of_a_degree())


def shares_of_a_degree():
    """Square kilometres of the towns."""
    squares = geopandas.GeoSeries([shapely.box(x, 50 + y, x + 1, 51 + y) for x in (0, 1) for y in (0, 1)], crs="EPSG:4326")
    return squares.to_crs("+proj=cea +ellps=WGS84 +units=m").area.to_numpy() / 1e6


def test_levels_that_cannot_be_drawn_are_refused():
    for release, level in ((point_release(), 9), (area_release(), 0), (trip_release(), 3), (point_release(), "town")):
        with pytest.raises(dv.DomainError):
            release.plot(level)


def test_categories_say_how_entries_find_their_slot():
    html = dv.Categories.hours("Asia/Tokyo").with_other()._repr_html_()
    for words in ("5 part of day, 25 hour", "the hour counts in the time zone Asia/Tokyo", "in a slot of their own"):
        assert words in html


def test_regions_without_geometry_have_no_map():
    bare = dv.Regions.from_table(pd.DataFrame({"town": ["a", "b"]}), levels=["town"])
    release = dv.RegionTree().release(dv.AreaCounts.from_counts([9, 4], regions=bare), dv.PureBudget(1), dv.Entropy.seeded(1))
    for draw in (release.plot, release.explore, lambda: release.plot("town")):
        with pytest.raises(dv.DomainError, match="The regions have no geometry"):
            draw()
