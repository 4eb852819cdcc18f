"""From a file of private rows to checked tables."""
