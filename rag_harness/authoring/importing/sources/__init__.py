"""The tools whose files are read, a file each: a table of their fields, and what only they have."""
