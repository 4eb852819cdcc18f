"""From files to checked rows: which formats there are, what a file may hold, which columns are meant, and which rows are bad.

Here belongs all that opens a file, public files of regions too. Rows are counted in `dpviz.data.counting`.
"""
