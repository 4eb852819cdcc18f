"""The Compare page: mechanisms side by side on public data. `state` is what it knows, `controls` its left side, `maps` its first tab."""
