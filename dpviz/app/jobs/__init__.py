"""Work in the background of a page.

`job.py` has the one `Job`; `keeper.py` says which jobs a session keeps, and which ones sessions share; `results.py` keeps results by their
questions. The other files say what a job does: a study, a count of files, a search for an epsilon, a figure of a paper, and the runs that
follow the controls of a page.
"""
