"""The frontends: the pytest plugin, the command line, and notebooks."""
