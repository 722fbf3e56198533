"""The routes of a service, a file a subject: each turns a request into a call of a room, and what comes into an answer."""
