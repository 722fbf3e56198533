"""The state folder of a service: one SQLite file with its contents, and one owner."""
