"""Attacks that run: on what is published today without a guarantee, and on private releases of the same data.

Each attack is a game that an attacker wins or loses, with the most that (epsilon, delta) allows (`game`): differencing of tables with
hidden small counts, reconstruction from rounded tables, averages of repeated releases, and homes behind jittered points. One, of a person's
many fixes, is meant to succeed on a private release whose protected unit is the record. Attacks are functions of arrays: what was
published, and what the attacker knows.

A *table* counts the same records by one partition of the blocks, which are the finest regions: (n,) the index of each block's region.
"""
