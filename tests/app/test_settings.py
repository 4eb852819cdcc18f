"""The server's settings keep the app on this computer and its errors to itself."""

import tomllib
from pathlib import Path

import pytest

SETTINGS = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("server", "address", "127.0.0.1"),
        ("server", "enableXsrfProtection", True),
        ("server", "enableCORS", True),
        ("server", "enableStaticServing", False),
        ("client", "showErrorDetails", "none"),
        ("browser", "gatherUsageStats", False),
        ("runner", "fastReruns", False),
    ],
)
def test_a_setting_that_safety_rests_on(section, name, value):
    assert SETTINGS[section][name] == value


def test_only_this_computer_may_be_named_as_host():
    assert set(SETTINGS["server"]["allowedHosts"]) <= {"localhost", "127.0.0.1", "[::1]", "::1"}


def test_uploads_have_a_limit():
    assert SETTINGS["server"]["maxUploadSize"] <= 512


def test_both_themes_share_one_hue_and_name_no_remote_font():
    assert {"light", "dark"} <= set(SETTINGS["theme"])
    assert "://" not in str(SETTINGS)
