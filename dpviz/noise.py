"""`dv.noise`: the noise of mechanisms, and whole numbers that add up, to build a mechanism from."""

from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.privacy.whole_numbers import nearest_whole_numbers

__all__ = ["discrete_gaussian", "discrete_laplace", "nearest_whole_numbers"]
