"""From rows to private counts, on NumPy in memory, DuckDB or Dask: any number of records, the same counts.

Here belong the engines and the counting job that they share: which columns are counted, and how the cell of each row is found.
`dpviz.data.reading` opens files and cuts them into rows.
"""
