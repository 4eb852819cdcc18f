"""Publication: configurations, dry runs, payment in the ledger, and the files. Command line and Curate both use it.

What does not belong here: anything that prints or shows a widget, and the noise itself. A draw is paid for here before a mechanism runs.
"""
