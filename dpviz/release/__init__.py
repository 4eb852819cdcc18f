"""Public output: holds nothing private."""
