"""Tests run in three processes, for many wait rather than work; what measures time or prints runs in one."""

import os

from hypothesis import settings

settings.register_profile("dpviz", deadline=None)  # how long an example takes says more about the machine than about the code
settings.load_profile("dpviz")


def pytest_xdist_auto_num_workers(config):
    """Workers for `-n auto`: none with `-m benchmark` or `-s`."""
    alone = config.option.markexpr == "benchmark" or config.option.capture == "no"
    return 0 if alone else min(3, 1 + (os.cpu_count() or 1))
