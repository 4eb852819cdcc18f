"""Pages without a browser: data and links to start from, and the pages as a link or an upload opens them."""

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from dpviz.app.cards.text_format import propose_text_format
from dpviz.app.pages.points.where import FRAMES
from dpviz.app.session.cached import digest_of, named_file
from dpviz.app.state.kinds import kind_of
from dpviz.app.state.parts import Box, ChosenRegions, Files
from dpviz.app.state.values import SIDES
from dpviz.families import FAMILIES
from dpviz.publishing.config import DataKeys
from tests.app.parts import changed_page, files_with, page_of_link, page_with
from tests.app.seen import good

SMALL = {"sample": "gaussian_cluster", "size": "1000", "order": "6", "mechanism": "quadtree", "settings": '{"height":4}', "epsilon": "0.5"}
CURATE = SMALL | {"mode": "Curate"}
FLIGHTS = {"sample": "us_flights", "level": "1", "mechanism": "top_down", "settings": "{}", "epsilon": "1.0", "top": "500"}
CURATE_TRIPS = FLIGHTS | {"mode": "Curate"}
PLACES = b"lon,lat,note\n-118.2,34.1,secret\n-80.25,25.5,hidden\n-100.125,40.5,quiet\n"
BARE = b"lon,lat\n-118.2,34.1\n-80.25,25.5\n-100.125,40.5\n"  # without a column whose content could look like ids
SWAPPED = b"lon,lat\n34.1,-118.2\n40.5,-100.125\n"
REGIONS = b"id,lat,lon,name\nA1,50,8,Aberg\nA2,51,9,Bdorf\nB1,52,9,Cburg\n"
JOURNEYS = b"origin,dest,count,rider\nA1,A2,500,r1\nA2,B1,40,r1\nB1,B1,900,r2\n"
STATES = "Contiguous United States"
TABS = {"tab": "Table", "trips tab": "Consistency", "areas tab": "Table"}  # those that are quickest to draw


def pages():
    import streamlit as st  # noqa: PLC0415 - only this function's text runs

    from dpviz.app.modes.page import family_page  # noqa: PLC0415
    from dpviz.app.pages.compare.page import compare_page  # noqa: PLC0415
    from dpviz.app.pages.help import help_page  # noqa: PLC0415
    from dpviz.app.pages.learn.page import learn_page  # noqa: PLC0415
    from dpviz.app.pages.papers import papers_page  # noqa: PLC0415
    from dpviz.app.pages.release import release_page  # noqa: PLC0415
    from dpviz.families import FAMILIES  # noqa: PLC0415

    at, kinds = st.session_state.get("at", "points"), (compare_page, learn_page, papers_page, release_page, help_page)
    if at in FAMILIES:
        family_page(FAMILIES[at])
    else:
        {kind.__name__.removesuffix("_page"): kind for kind in kinds}[at]()


def pages_app(at="points", link=CURATE, state=()):
    """All pages in one session, with what it knows from before; `go` is the navigation between them."""
    app, link, state = AppTest.from_function(pages, default_timeout=120), dict(link), dict(state)
    if link.get("mode") == "Curate" and at in FAMILIES:  # no link carries the mode
        state = {kind_of(at).key: page_of_link(kind_of(at), link)} | state
    app.query_params.update(link)
    for key, value in {**TABS, "at": at, **state}.items():
        app.session_state[key] = value
    return good(app.run())


def points_app(link=SMALL):
    return pages_app("points", link)


def trips_app(link=FLIGHTS):
    return pages_app("trips", link)


def uploaded(content=PLACES, name="homes.csv", *, link=CURATE, frame=STATES, crs="EPSG:4326", unit="each"):
    """The Points page after an upload, with bounds, CRS and unit of privacy (None: none is chosen)."""
    page = page_of_link(kind_of("points"), link)
    files = files_with(name, content, mode=page.draft.mode, whom=unit, crs=crs or None)
    page = changed_page(page, source="upload", uploaded=files, domain=box_of(frame))
    return pages_app("points", {}, {"config": page, "uploaded": (name, content)})


def box_of(frame):
    """A usual rectangle as the domain; no bounds for None."""
    bounds = FRAMES.get(frame)
    return Box() if bounds is None else Box(**dict(zip(SIDES, bounds, strict=True)), crs="EPSG:4326", frame=frame)


def trips_uploaded(mode="Curate", *, unit="each", **files):
    """The Trips page after an upload of regions in two levels, and of trips between them."""
    given = {"regions": ("homes.csv", REGIONS), "trips": ("trips.csv", JOURNEYS)} | files
    name, regions = given["regions"]
    parts = {"regions": ChosenRegions(file=name, levels=("id",), prefixes=(1,), digest=digest_of(regions))} if regions == REGIONS else {}
    name, trips = given["trips"]
    data = DataKeys(trips=name, **propose_text_format(named_file(name, trips), name))
    answers = Files(data=data, digest=digest_of(trips), whom=unit, said_in_teach=mode == "Teach")
    state = {"trips config": page_with("trips", mode=mode, source="upload", uploaded=answers, **parts)}
    state |= {f"public {role} file {digest_of(body)}": True for role, (_, body) in given.items() if role != "trips"}
    return pages_app("trips", {}, state | {f"{role} uploaded": file for role, file in given.items()})


AREA_REGIONS = b"district,tract\nA,A1\nA,A2\nB,B1\nB,B2\n"
TRACTS = ["A1"] * 60 + ["A2"] * 25 + ["B1"] * 5
VISITS = b"tract,visitor\n" + b"".join(f"{tract},v{number}\n".encode() for number, tract in enumerate(TRACTS))


def areas_uploaded(
    mode="Curate", *, unit="each", points=VISITS, regions=AREA_REGIONS, levels=("district", "tract"), drop=False, count="none"
):
    """The Areas page after an upload of regions without shapes, and of records with ids of their finest regions."""
    chosen = ChosenRegions(file="regions.csv", levels=tuple(levels), digest=digest_of(regions) if levels else "")
    files = replace(files_with("visits.csv", points, mode=mode, whom=unit, region="tract", count=count), drop_bad_rows=drop)
    state = {"areas config": page_with("areas", mode=mode, source="upload", uploaded=files, regions=chosen)}
    state[f"public areas regions file {digest_of(regions)}"] = True
    return pages_app("areas", {}, state | {"areas regions uploaded": ("regions.csv", regions), "areas uploaded": ("visits.csv", points)})


def query_of(app):
    """The parameters in the address."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}
