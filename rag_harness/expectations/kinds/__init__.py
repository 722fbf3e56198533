"""The kinds that come with the package, a file for what they look at. They are found by their names."""
