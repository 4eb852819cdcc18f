"""What made-up samples share: their seed, the limit of their size, and the tables of sample data that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import pandas as pd

from dpviz.bundled import folder
from dpviz.errors import InputError, did_you_mean

SEED = 7
MOST_SAMPLES = 10_000_000
S = TypeVar("S")


def check_size(size: int) -> None:
    """Check the size of a made-up sample.

    Raises:
        InputError: `size` is not a whole number from 1 to 10,000,000.
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= MOST_SAMPLES:
        raise InputError("The size of a sample must be a whole number from 1 to 10,000,000.")


def table(key: str) -> pd.DataFrame:
    """Read a bundled table of sample data, for example "us_places"."""
    return pd.read_parquet(folder("sample_data") / f"{key}.parquet")


def find_sample(samples: Mapping[str, S], key: str) -> S:
    """Return the description of a sample.

    Raises:
        InputError: there is no such sample.
    """
    if key not in samples:
        raise InputError(f"There is no such sample; choose one of {', '.join(samples)}.{did_you_mean(str(key), samples)}")
    return samples[key]
