"""The experiments of the papers whose methods are implemented: each figure as a function that gives a table, and charts of them."""
