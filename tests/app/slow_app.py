"""The app with draws that take some seconds longer, as on a large dataset: what a browser test clicks into."""

import time

from dpviz.app import main
from dpviz.publishing import publish

SECONDS = 4


def slower(real):
    def drawn(*args, **options):
        time.sleep(SECONDS)
        return real(*args, **options)

    drawn.slow = True
    return drawn


if __name__ == "__main__":  # as Streamlit runs it: an import, which collects doctests, must slow nothing down
    if not hasattr(publish._make_release, "slow"):  # the script runs anew with every click
        publish._make_release = slower(publish._make_release)
    main()
