"""Mechanisms of areas: one method per file, named by its key."""
