"""The app with a library of maps that fails in every browser."""

import tempfile
from pathlib import Path

from dpviz.app import main
from dpviz.app.components import panes

if __name__ == "__main__":  # as Streamlit runs it: an import, which collects doctests, must break nothing
    broken = Path(tempfile.gettempdir()) / "dpviz broken canvas.js"
    broken.write_text('throw new Error("no")')
    panes.BUNDLE = broken
    main()
