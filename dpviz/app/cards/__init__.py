"""The questions of Curate, above all about files: whom to protect, where, how good."""
