"""What all made-up data share: the usual seed, how many records there may be, and real towns to place them around."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpviz.bundled import folder
from dpviz.errors import InputError

SEED = 7
MOST_SAMPLES = 10_000_000


def check_size(size: int) -> None:
    """Raise `InputError` unless `size` is a whole number from 1 to 10,000,000."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= MOST_SAMPLES:
        raise InputError("The size of a sample must be a whole number from 1 to 10,000,000.")


def table(key: str) -> pd.DataFrame:
    """A bundled file of sample data, for example "us_places"."""
    return pd.read_parquet(folder("sample_data") / f"{key}.parquet")
