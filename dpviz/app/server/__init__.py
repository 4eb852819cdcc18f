"""The process that serves the app, who may enter, and the limits of a class."""
