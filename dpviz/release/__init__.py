"""What mechanisms release: counts with their errors and receipt, the manifest, and the files of a publication.

What does not belong here: private data and mechanisms. A release knows no private value, so everything in this room is public.
"""
