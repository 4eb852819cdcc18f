"""Paths of the files that come with dpviz: beside the package in a checkout, inside it once installed."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """Path of a bundled folder.

    Args:
        name: "assets" or "sample_data".

    >>> folder("sample_data").is_dir()
    True
    """
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def app_script() -> Path:
    """Path of the script that Streamlit runs. Its settings are beside it in .streamlit/config.toml.

    >>> app_script().name
    'app.py'
    """
    inside = _PACKAGE / "start" / "app.py"
    return inside if inside.is_file() else _PACKAGE.parent / "app.py"
