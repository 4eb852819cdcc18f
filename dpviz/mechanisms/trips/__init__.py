"""Mechanisms for trips, one method per file; the name of the file is its key.

What they share is in `dpviz.mechanisms.noisy_flows`; noise itself is in `dpviz.privacy`.
"""
