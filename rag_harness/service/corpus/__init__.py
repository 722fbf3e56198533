"""The documents of a service, a collection a tenant: ingested and deleted whole or not at all, searched meanwhile."""
