"""Documents, queries and gold: from files into nouns."""
