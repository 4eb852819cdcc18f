"""Releases compared with the truth: errors of counts and queries, studies of many mechanisms, audits, record matching.

Results of this room are for the curator: they depend on private data, and no part of them may get into a release. Errors that a release
states without the truth are in `dpviz.release`; charts of results are in `dpviz.view`.
"""

from dpviz.evaluation.audits import audit_all
from dpviz.evaluation.tables import frontier
from dpviz.release.area_fitness import fitness
from dpviz.release.squares import expected_error
from dpviz.space.workloads import random_rectangles

__all__ = ["audit_all", "expected_error", "fitness", "frontier", "random_rectangles"]
