"""Mechanisms for trips, one method per file; the name of the file is its key."""
