"""From private data to files that a stranger can judge: the one way that the command line and the Release page go."""
