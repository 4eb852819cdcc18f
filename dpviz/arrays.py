"""Types of numpy arrays, by what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Places = NDArray[np.int32]
"""Numbers of regions of a level, in their order."""
Lines = NDArray[np.int32]
"""Lines of a lattice, from 0 in the west or south."""
Texts = NDArray[np.object_]
"""Texts of any length, such as ids and names."""
