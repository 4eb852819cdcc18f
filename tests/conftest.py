"""Tests run on two processors; what measures time or prints runs on one."""

import os


def pytest_xdist_auto_num_workers(config):
    """Workers for `-n auto`: none with `-m benchmark` or `-s`."""
    alone = config.option.markexpr == "benchmark" or config.option.capture == "no"
    return 0 if alone else min(2, os.cpu_count() or 1)
