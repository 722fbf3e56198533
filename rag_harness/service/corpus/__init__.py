"""The documents of a service: each collection belongs to a tenant, and changes as a whole while it is searched."""
