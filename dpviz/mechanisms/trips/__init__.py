"""Mechanisms for trips, one method per file; the name of the file is its key.

`true_stages` sums the private trips for those that count stage by stage. What all share is in `dpviz.mechanisms.trips.base`; noise
itself is in `dpviz.privacy`.
"""
