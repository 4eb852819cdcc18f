"""What is collected here."""

collect_ignore = ["roads.py"]  # it joins the families when it is imported, and only the tests of a third family know it
