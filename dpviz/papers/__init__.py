"""The papers' experiments: their figures as tables and charts."""
