"""The command line: `dpviz check`, `release`, `ledger`, `compare`, `audit`, `paper` and `app`.

Here belong a command's arguments, its exit code and what it prints. What a command computes, spends or writes belongs in `publishing`
or `evaluation`, where the app uses it, too.
"""
