"""The dpviz app: `streamlit run app.py`."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("dpviz needs Python 3.11 or newer; this is Python {}.{}.".format(*sys.version_info[:2]))

from dpviz.app import main

main()
