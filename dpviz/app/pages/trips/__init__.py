"""The Trips page: its state, its data, and what it shows."""
