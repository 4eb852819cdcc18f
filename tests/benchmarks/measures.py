"""What benchmarks measure: seconds, and the memory of a process of its own."""

import gc
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

_START = """
import resource
import numpy as np
import dpviz as dv
from dpviz import mechanisms
"""
_END = "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"


def best(run: Callable[[], Any], times: int = 5) -> float:
    """Seconds of the fastest of several runs."""
    return min(timeit.repeat(run, setup=gc.enable, number=1, repeat=times))


def printed(code: str) -> float:
    """The number that a fresh interpreter prints."""
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def peak(code: str) -> float:
    """The most bytes that a process held which ran `code`, imports included."""
    return printed(_START + code + _END)
