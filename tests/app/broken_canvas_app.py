"""The app with a library of maps that fails in every browser."""

from pathlib import Path

from dpviz.app import main
from dpviz.app.components import panes

if __name__ == "__main__":  # as Streamlit runs it: an import, which collects doctests, must break nothing
    panes.BUNDLE = Path(__file__).with_name("broken_bundle.js")
    main()
