"""Types of numpy arrays, by their content."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Places = NDArray[np.int32]
"""Indices of regions within their level."""
Lines = NDArray[np.int32]
"""Indices of lattice lines, from 0 in the west or south."""
Texts = NDArray[np.object_]
"""Texts of any length, such as ids and names."""
