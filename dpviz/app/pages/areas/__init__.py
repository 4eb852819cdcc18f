"""The Areas page: points counted in declared nested regions."""
