"""Components of pages that are drawn by scripts of their own in the browser."""
