"""Interactive maps: one page with everything in it."""

import base64
import gzip
import json
import re

import pytest

import dpviz as dv
from dpviz.view.deck import BUNDLE
from tests.hostile import NAMES
from tests.release_cases import area_release, areas_on, flows_on, point_release, regions_with_shapes

RELEASES = {
    "points": point_release,
    "trips": lambda: dv.TopDown().release(flows_on(regions_with_shapes()), dv.ApproxBudget(5, "1e-6"), dv.Entropy.system()),
    "areas": area_release,
}


@pytest.mark.parametrize("kind", RELEASES)
def test_a_page_has_library_and_data_and_may_load_nothing(kind):
    page = RELEASES[kind]().explore(level=1)
    assert gzip.decompress(base64.b64decode(re.search(r'atob\("([^"]*)"\)', page.html)[1])) == BUNDLE.read_bytes()
    deck = json.loads(re.search(r"const jsonInput = (.*);\n", page.html)[1])
    assert deck["layers"]
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
    assert "<b>" not in page.html.partition("const jsonInput")[2].partition("const packed")[0]
    assert re.fullmatch(r"<iframe [^<>]*></iframe>", page._repr_html_())


def test_a_page_is_saved(tmp_path):
    page = point_release().explore()
    assert page.save(tmp_path / "map.html").read_text("utf-8") == page.html
