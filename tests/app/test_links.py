"""Links of an earlier version open as they did."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from dpviz.app.compare.state import CompareConfig
from dpviz.app.points_state import Config
from dpviz.app.session import read_link
from dpviz.app.trips_state import TripsConfig

LINKS = json.loads((Path(__file__).parents[1] / "golden" / "links.json").read_text("utf-8"))  # never written again
KINDS = {"points": Config, "trips": TripsConfig, "compare": CompareConfig}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_opens_as_it_did(name):
    config = read_link(KINDS[name.split()[0]], LINKS[name]["link"])
    assert {part: json.loads(json.dumps(value)) for part, value in asdict(config).items() if part in LINKS[name]["opens"]} == LINKS[name][
        "opens"
    ]
