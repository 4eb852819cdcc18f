"""The Learn page: lessons, their questions and widgets, and the path through them."""
