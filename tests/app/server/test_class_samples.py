"""Public files of the person who starts a class: samples of its server alone, refused with a sentence if they cannot be read."""

import math
import subprocess
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpviz.app.server import class_samples
from dpviz.app.server.class_mode import ClassMode
from dpviz.app.server.class_samples import add_class_samples, load_points
from dpviz.data.fingerprints import UNKNOWN
from dpviz.data.points import PointCounts
from dpviz.errors import DpvizError
from dpviz.publishing.study_config import study_from
from dpviz.samples.areas import AREA_SAMPLES
from dpviz.samples.points import POINT_SAMPLES
from dpviz.samples.trips import TRIP_SAMPLES
from tests.app.seen import drawn, fine, newest, warnings
from tests.app.start import pages_app, query_of
from tests.app.walk import open_drawer
from tests.publishing.test_code import made_by
from tests.release_cases import assert_same

DOMAIN = '[domain]\nbounds = [4.6, 45.6, 5.1, 45.9]\ncrs = "EPSG:4326"\n'
HOMES = '[data]\npoints = "homes.csv"\nx = "lon"\ny = "lat"\ncrs = "EPSG:4326"\ncount = "none"\npublic = true\n'
TRIPS = '[data]\ntrips = "rides.csv"\npublic = true\n'
REGIONS = '[regions]\nfile = "towns.csv"\nlevels = ["state", "town"]\n'
AREAS = f'[data]\npoints = "visits.csv"\nregion = "town"\ncount = "none"\npublic = true\n{REGIONS}'


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder with the files of a class, which this process is the server of until the end of the test."""
    rng = np.random.default_rng(1)
    homes = pd.DataFrame({"lon": rng.normal(4.85, 0.03, 400), "lat": rng.normal(45.75, 0.03, 400)})
    homes.to_csv(tmp_path / "homes.csv", index=False)
    pd.DataFrame({"state": list("AAB"), "town": ["A1", "A2", "B1"]}).to_csv(tmp_path / "towns.csv", index=False)
    pd.DataFrame({"town": ["A1"] * 30 + ["B1"] * 5}).to_csv(tmp_path / "visits.csv", index=False)
    pd.DataFrame({"origin": ["A1", "A2"], "destination": ["B1", "B1"], "count": [900, 40]}).to_csv(tmp_path / "rides.csv", index=False)
    for name, text in {"lyon": HOMES + DOMAIN, "rides": TRIPS + REGIONS, "visits": AREAS}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpviz.app.server.class_mode._mode", ClassMode(code=None, memory=math.inf))
    yield tmp_path
    for samples in (POINT_SAMPLES, TRIP_SAMPLES, AREA_SAMPLES):
        for name in class_samples._added.keys() & samples.keys():
            samples.pop(name)
    class_samples._added.clear()


def test_points_are_a_sample_whose_links_name_it_and_whose_code_reads_the_file(here):
    add_class_samples(["lyon.toml"])
    link = {"sample": "lyon", "order": "6", "mechanism": "quadtree", "settings": '{"height":4}', "run": "7"}
    app = fine(open_drawer(pages_app("points", link), "Numbers"))
    assert drawn(app).data.counts.count.sum() == 400
    assert query_of(app)["sample"] == "lyon"
    assert str(here) not in str(query_of(app))
    code = next(block.value for block in app.code if block.language == "python")
    assert_same(made_by(code)["release"], drawn(app).release)
    assert str(here) not in code


def test_a_study_of_a_sample_of_the_class_names_its_file(here):
    add_class_samples(["lyon.toml"])
    app = fine(pages_app("compare", {"sample": "lyon", "order": "4", "mechanisms": '["quadtree"]', "steps": "1", "repeats": "1"}))
    python, toml = (next(block.value for block in app.code if block.language == language) for language in ("python", "toml"))
    points = made_by(python.partition("study =")[0])["points"]
    assert (points.count.sum(), points.domain.order) == (400, 4)
    assert study_from(tomllib.loads(toml)).data.files == ("homes.csv",)


@pytest.mark.parametrize(("family", "total"), [("trips", 940), ("areas", 35)])
def test_trips_and_areas_are_samples(here, family, total):
    name = {"trips": "rides", "areas": "visits"}[family]
    add_class_samples([f"{name}.toml"])
    app = fine(pages_app(family, {"sample": name}))
    assert newest(app, f"{family} config first run").data.counts.count.sum() == total


def test_points_counted_again_are_those_of_the_file(here):
    add_class_samples(["lyon.toml"])
    own = POINT_SAMPLES["lyon"].domain
    assert own.order == 10
    coarse = own.__class__(bounds=own.bounds, crs=own.crs, order=4)
    rows = pd.read_csv("homes.csv")
    again = PointCounts.from_xy(rows["lon"], rows["lat"], domain=coarse)
    assert_same(replace(load_points("lyon", None, coarse), fingerprints=UNKNOWN), again)


def test_without_the_file_a_link_says_that_it_does_not_know_the_sample():
    assert "Not understood in this link: sample" in warnings(pages_app("points", {"sample": "lyon"}))


@pytest.mark.slow
def test_the_server_starts_with_public_files_or_says_why_not(here, dpviz_app):
    words = ["--class", "--host", "127.0.0.1", f"--public={here / 'lyon.toml'}"]
    assert "samples only" in dpviz_app(*words)[2]
    (here / "lyon.toml").write_text(HOMES)
    start = [sys.executable, "-m", "dpviz.app.server.process", "--port=1", *words]
    ended = subprocess.run(start, capture_output=True, text=True, check=False)
    assert (ended.returncode, "--public lyon.toml: Points need a [domain]" in ended.stderr) == (2, True)
    assert "Traceback" not in ended.stderr


REFUSED = {
    "not declared": ({"own.toml": HOMES.replace("public = true\n", "") + DOMAIN}, "public = true"),
    "no such file": ({"own.toml": HOMES.replace("homes", "houses") + DOMAIN}, "--public own.toml: "),
    "no such column": ({"own.toml": HOMES.replace('"lon"', '"longitude"') + DOMAIN}, "--public own.toml: "),
    "no domain": ({"own.toml": HOMES}, "Points need a \\[domain\\]"),
    "no data": ({"own.toml": DOMAIN}, "lacks \\[data\\]"),
    "a study area": ({"own.toml": HOMES + DOMAIN + 'study_area = "land"\n'}, "study_area: leave it out"),
    "a sample": ({"own.toml": '[data]\nsample = "us_places"\n'}, "it is a sample already"),
    "a taken name": ({"us_places.toml": HOMES + DOMAIN}, "a sample of this name already"),
    "a name with blanks": ({"my homes.toml": HOMES + DOMAIN}, "The name of the file names the sample"),
}


@pytest.mark.parametrize(("files", "text"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_a_sample_is_refused_with_a_sentence(here, files, text):
    for name, content in files.items():
        (here / name).write_text(content)
        with pytest.raises(DpvizError, match=text):
            add_class_samples([name])
    assert not class_samples._added
