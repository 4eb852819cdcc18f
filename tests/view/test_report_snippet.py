"""The example code in a report runs as printed and gives the stated sums."""

import contextlib
import html
import io
import re

import pytest

from dpviz.mechanisms import Kdtree, Quadtree, TopDown
from dpviz.privacy.budget import ApproxBudget, PureBudget
from dpviz.privacy.entropy import Entropy
from dpviz.release.files import write_release
from dpviz.release.manifest import describe
from dpviz.view.report import report_html
from tests.release_cases import WORDS, flows_on, points_of, regions_with_shapes

FORMATS = [("geoparquet", "geojson", "csv"), ("csv",), ("geojson",)]
MIDDLE = [-6.0, 44.0, 2.0, 52.0]


def found_in_report(release, formats, folder) -> str:
    """The code in the report of a release that is written into a folder."""
    manifest = describe(release, WORDS)
    report = report_html(release, manifest, formats=formats)
    write_release(release, folder, manifest, formats=formats, files={"report.html": report})
    found = re.findall(r"<pre><code>(.*?)</code></pre>", (folder / "report.html").read_text("utf-8"), re.DOTALL)
    assert len(found) == 1
    return html.unescape(found[0])


def printed(code: str) -> float:
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(code, "report", "exec"), {})  # noqa: S102
    return float(told.getvalue())


@pytest.mark.parametrize("formats", FORMATS, ids="+".join)
@pytest.mark.parametrize("mechanism", [Quadtree(height=3), Kdtree(height=2)], ids=lambda mechanism: mechanism.key)
def test_it_adds_up_a_box_as_the_release_does(mechanism, formats, tmp_path, monkeypatch):
    release = mechanism.release(points_of(400), PureBudget(1), Entropy.system())
    code = found_in_report(release, formats, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    assert printed(code) == pytest.approx(release.answer([MIDDLE])[0], rel=1e-6)


@pytest.mark.parametrize("formats", FORMATS[:2], ids="+".join)
def test_it_adds_up_the_trips_from_a_region_whatever_its_id(formats, tmp_path, monkeypatch):
    regions = regions_with_shapes()
    ids = ["=1+1'\"\\", *regions.ids[1][1:]]
    regions.ids[1][:] = ids
    release = TopDown().release(flows_on(regions), ApproxBudget(5, "1e-6"), Entropy.system())
    code = found_in_report(release, formats, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    assert printed(code) == release.answer([ids[0]], ["all"], levels=(2, 0))[0] > 0
