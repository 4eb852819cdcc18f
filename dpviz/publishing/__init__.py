"""Publication: configurations, dry runs, payment in the ledger, and the files. Command line and Release page both use it."""
