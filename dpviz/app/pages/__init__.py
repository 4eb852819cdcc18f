"""The pages: what each of them alone shows."""
