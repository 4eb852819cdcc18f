"""Private input: only a mechanism or a study may look."""
