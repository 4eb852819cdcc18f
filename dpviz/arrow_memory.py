"""Bytes in memory that Arrow owns, for everything that Arrow reads in its own threads.

Why: the last reference to a reader's input may be dropped in one of Arrow's threads, after the reader has returned. Freeing a Python
`bytes` object needs Python's global lock. If the process is ending by then, Python terminates the thread that waits for the lock, inside
a C++ destructor, which aborts the whole process: "terminate called without an active exception", exit code 134. Memory that Arrow
allocated is freed without that lock.
"""

import pyarrow as pa


def copy_to_arrow(content: bytes) -> pa.Buffer:
    """Copy `content` to memory that Arrow can free in any thread, without Python's global lock.

    >>> copy_to_arrow(b"abc").to_pybytes()
    b'abc'
    """
    memory = pa.allocate_buffer(len(content))
    memoryview(memory).cast("B")[:] = content
    return memory
