"""Data that come with the package: public or made up, so that anybody may look."""
