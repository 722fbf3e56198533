"""The documents of a service: collections of tenants that change while they are searched."""
