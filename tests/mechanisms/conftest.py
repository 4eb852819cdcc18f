"""What is collected here."""

# They join the families when they are imported, and only the tests of another family know them.
collect_ignore = ["roads.py", "roads_page.py"]
