"""Public frames in which counts are made: the domain and its lattice, trees, curves, regions and query workloads.

What does not belong here: anything private. No function of this room sees a record or a count of records, except as an argument that
the caller has already released.
"""
