"""The clock of the figures that measure seconds."""

from __future__ import annotations

import time

_FINEST = 1e-6  # seconds

if time.get_clock_info("thread_time").resolution <= _FINEST:
    seconds_now = time.thread_time
    """Seconds of the processor that this thread has used, so that other work on a busy computer does not count."""
else:
    seconds_now = time.perf_counter
