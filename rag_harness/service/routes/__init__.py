"""The routes of a service, one file for each subject. A route calls a room and returns its answer."""
