"""What a session holds: its configuration, data, releases, drafts and caches, and the ledger as pages see it."""
