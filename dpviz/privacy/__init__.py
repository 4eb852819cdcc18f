"""Building blocks: budgets, noise, consistency."""
