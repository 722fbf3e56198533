"""Who may do what, and how much of it: keys, scopes, quotas, rates, limits of what is sent."""
