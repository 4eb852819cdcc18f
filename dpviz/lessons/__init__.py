"""What the stops of the Learn page compute and show; the page itself is in `app`."""
