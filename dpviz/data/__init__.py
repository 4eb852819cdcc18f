"""Private counts of points and trips, with each person's records bounded. Only a mechanism or a study may look at them.

Here belong the counts (`points`, `trips`), the rows and columns that they are made of, and the bound of each person's records. Files are
opened in `dpviz.data.reading` and counted in `dpviz.data.counting`. Public domains and regions are in `dpviz.space`.
"""
