"""From rows to private counts, on NumPy in memory, DuckDB or Dask: any number of records, the same counts.

Here belong the engines, and what they share: which columns are counted, and in which cell each row lies. How files are opened and cut
into rows is in `dpviz.data.reading`.
"""
