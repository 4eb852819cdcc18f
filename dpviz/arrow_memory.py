"""Bytes in memory that Arrow owns, for everything that Arrow reads in threads of its own.

A reader's last reference to its input may fall in one of Arrow's threads, after the reader has returned. Python's own bytes are let go
of under Python's lock; a thread that asks for that lock while the process ends is ended within a destructor, and the whole process with
it: "terminate called without an active exception", exit code 134. Arrow's own memory needs no lock.
"""

import pyarrow as pa


def in_arrow_memory(content: bytes) -> pa.Buffer:
    """A copy of `content` that no thread needs Python's lock to let go of; what Arrow reads is read from here."""
    memory = pa.allocate_buffer(len(content))
    memoryview(memory).cast("B")[:] = content
    return memory
