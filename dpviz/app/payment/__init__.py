"""What is paid for in Curate: the dataset's account, the button that pays, and the releases that were paid for."""
