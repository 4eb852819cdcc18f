"""The Points page: its state, its data, and what it shows."""
