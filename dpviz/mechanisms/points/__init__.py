"""Mechanisms for points, one method per file; the name of the file is its key.

What several of them share (a private median tree, noisy counts, tuning) is here or in the folder above; noise itself is in `dpviz.privacy`.
"""
