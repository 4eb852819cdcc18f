"""See what a differentially private release of locations would look like, then publish it safely.

The whole way, from private points to an answer:

>>> import numpy as np
>>> import dpviz as dv

A public frame, declared and never taken from the data; private points, counted on its lattice.

>>> domain = dv.Domain(bounds=(0.0, 0.0, 16.0, 16.0), crs=None, order=4)
>>> x, y = np.random.default_rng(1).normal([[5.0], [9.0]], 2.0, (2, 1000))
>>> points = dv.PointCounts.from_xy(x, y, domain=domain)

A mechanism spends a budget once; a seed makes a simulation, `Entropy.system()` something that may be published.

>>> release = dv.Quadtree(height=4).release(points, dv.PureBudget(0.5), dv.Entropy.seeded(7))
>>> release.receipt.spent == release.receipt.total
True

A release holds nothing private: ask it anything, as often as you like.

>>> count, stddev = release.answer([[0, 0, 8, 16]], spread=True)
>>> bool(abs(count[0] - 930) < 4 * stddev[0])
True
>>> release.to_frame(level=2).columns.tolist()[:3]
['partition_id', 'level', 'count']

Trips go the same way: public nested regions, private trips between them, a mechanism, a release.

>>> import pandas as pd
>>> table = pd.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
>>> regions = dv.Regions.from_table(table, levels=["state", "town"])
>>> trips = pd.DataFrame({"origin": ["a", "b", "c"], "destination": ["c", "c", "a"], "count": [900, 40, 500]})
>>> trip_counts = dv.TripCounts.from_table(trips, regions=regions)
>>> released = dv.TopDown().release(trip_counts, dv.ApproxBudget(2.0, 1e-6), dv.Entropy.seeded(7))
>>> released.to_frame("state")["count"].sum() == released.to_frame("town")["count"].sum() == 1440
np.True_

What was drawn from the operating system's entropy may be published: files, and a manifest by which a stranger can judge them.

>>> import tempfile
>>> from pathlib import Path
>>> private = dv.Quadtree(height=4).release(points, dv.PureBudget(0.5), dv.Entropy.system())
>>> words = dict(name="Walks", curator="A town", description="Made up.", region="A plane", intended_use="An example")
>>> manifest = dv.describe(private, dv.Publication(**words, draws=1, truth_seen=False))
>>> with tempfile.TemporaryDirectory() as around:
...     folder = dv.write_release(private, Path(around) / "walks", manifest)
...     dv.read_release(folder).receipt == private.receipt
True
"""

import importlib
import sys
import typing

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("dpviz needs Python 3.11 or newer; this is Python %d.%d." % sys.version_info[:2])  # noqa: UP031

if typing.TYPE_CHECKING:
    from dpviz.public import *  # noqa: F403
    from dpviz.public import __all__ as __all__

__version__ = "0.1.0"
"""The version. pyproject.toml takes it from here."""


def __getattr__(name: str) -> typing.Any:
    """Import everything public when a name is used for the first time: `dpviz --help` and the like need none of it.

    Raises:
        AttributeError: no such name; the text says what an old name is called now.
    """
    now = None
    if name == "__all__" or not name.startswith("_"):
        public = importlib.import_module("dpviz.public")
        globals().update({each: getattr(public, each) for each in public.__all__}, __all__=public.__all__)
        if name in globals():
            return globals()[name]
        for family in importlib.import_module("dpviz.families").FAMILIES.values():  # mechanisms without a name of their own in `public`
            if (kind := {each.__name__: each for each in family.own}.get(name)) is not None:
                return kind
        rooms = ("contrasts", "attacks", "evaluation", "mechanisms", "noise", "reading")
        moved = next((f"{room}.{name}" for room in rooms if hasattr(globals()[room], name)), None)
        now = importlib.import_module("dpviz.renamed").RENAMED.get(name, moved)
    raise AttributeError(f"module 'dpviz' has no attribute {name!r}" + (f": it is dv.{now} now" if now else ""))


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
