"""Public frames in which counts are made: the domain and its lattice, trees, curves, regions and query workloads.

What does not belong here: anything private. Functions here may compute with counts that the caller passes, but none reads private data.
"""
