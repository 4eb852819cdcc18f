"""Interactive maps: one page with everything in it."""

import base64
import gzip
import json
import re

import pytest

import dpviz as dv
from dpviz.view.deck import BUNDLE
from tests.hostile import NAMES
from tests.release_cases import area_release, areas_on, point_release, regions_with_shapes, trip_counts_on
from tests.scenes import unpack

RELEASES = {
    "points": point_release,
    "trips": lambda: dv.TopDown().release(trip_counts_on(regions_with_shapes()), dv.ApproxBudget(5, "1e-6"), dv.Entropy.system()),
    "areas": area_release,
}


@pytest.mark.parametrize("kind", RELEASES)
def test_a_page_has_library_and_data_and_may_load_nothing(kind):
    page = RELEASES[kind]().explore(level=1)
    (library,) = re.findall(r'unpacked\("([^"]*)"\)', page.html)
    assert gzip.decompress(base64.b64decode(library)) == BUNDLE.read_bytes()
    header, arrays = unpack([base64.b64decode(message) for message in json.loads(re.search(r"const messages = (.*);", page.html)[1])])
    assert len(header["panes"]) == 1
    assert arrays
    assert page.html.count("<svg") == 2, "the same scene as SVG, where there is no WebGL, and in print"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page.html)[1]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert not re.search(r'(src|href)="', page.html)


def test_names_cannot_leave_the_data_of_a_page():
    release = dv.RegionTree().release(
        areas_on(regions_with_shapes(["</script><b>", NAMES[0], NAMES[3], NAMES[19]])), dv.PureBudget(1), dv.Entropy.seeded(1)
    )
    page = release.explore()
    assert page.html.count("</script>") == 1
    assert "<b>" not in page.html.partition('<div id="still">')[2].partition("<footer>")[0]
    assert re.fullmatch(r"<iframe [^<>]*></iframe>", page._repr_html_())


def test_a_page_is_saved(tmp_path):
    page = point_release().explore()
    assert page.save(tmp_path / "map.html").read_text("utf-8") == page.html
