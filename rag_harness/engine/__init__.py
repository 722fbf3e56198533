"""Many trials at once."""
