"""The command line: `dpviz check`, `release`, `ledger`, `compare`, `audit` and `app`."""
