"""Access to a service: keys, scopes, quotas, rates, and limits on what clients send."""
