"""Where the files that come with dpviz are: beside the package in a checkout, inside it once installed."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """Path of a bundled folder.

    Args:
        name: "assets" or "sample_data".
    """
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def app_script() -> Path:
    """The script that Streamlit runs; its settings lie beside it in .streamlit/config.toml."""
    inside = _PACKAGE / "start" / "app.py"
    return inside if inside.is_file() else _PACKAGE.parent / "app.py"
