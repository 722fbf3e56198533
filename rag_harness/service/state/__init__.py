"""The state folder of a service: one SQLite file that says what is there, and one owner of it all."""
