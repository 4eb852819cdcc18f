"""Teach and Curate, and what Points, Trips and Areas share in them."""
