"""Sample data that come with the package. They are public or made up; private data never belong here.

Each sample names its source and licence in `sample_data/README.md`.
"""
