"""The experiments of the papers whose methods are implemented: each figure as a function that gives a table, and charts of them.

What does not belong here: mechanisms and metrics. An experiment calls those of the package, so that its figure shows what users get.
"""
