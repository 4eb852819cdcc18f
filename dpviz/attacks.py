"""`dv.attacks`: what an attacker learns from published tables and from releases."""

from dpviz.evaluation.attacks.differencing import recover_hidden
from dpviz.evaluation.attacks.game import guess_bound, membership_bound
from dpviz.evaluation.attacks.rounding import bound_counts

__all__ = ["bound_counts", "guess_bound", "membership_bound", "recover_hidden"]
