"""Building blocks of private mechanisms: budgets, exact noise, medians, selection, least squares, receipts, the ledger and the audit.

What does not belong here: anything that knows one mechanism, a file format or a page.
"""
