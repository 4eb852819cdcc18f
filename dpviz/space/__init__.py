"""Public frame: where counts may live."""
