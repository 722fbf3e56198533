"""The routes of a service, a file a subject: request -> call of a room -> answer."""
