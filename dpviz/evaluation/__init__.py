"""Releases compared with the truth: errors of counts and queries, studies of many mechanisms, audits, record matching.

Results of this room are for the curator: they depend on private data, and no part of them may get into a release. Errors that a release
states without the truth are in `dpviz.release`; charts of results are in `dpviz.view`.
"""
