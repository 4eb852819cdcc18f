"""From files to checked rows: formats, limits, the choice of columns, and bad rows.

Here belongs everything that opens a file, also public files of regions. Rows are counted in `dpviz.data.counting`.
"""
