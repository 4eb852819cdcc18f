"""The cells of a lattice as a job finds them, without a file that says which columns hold points."""

from functools import partial

from dpviz.data.cells import cells_of
from dpviz.data.counting.job import PointCells


def cells_on(points, domain):
    """The finder of the cells of a domain, for points in some columns."""
    return PointCells(points=points, find=partial(cells_of, domain=domain), size=domain.side**2)
