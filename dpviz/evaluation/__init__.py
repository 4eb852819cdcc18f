"""What a release is asked, and how far it is from the truth."""
