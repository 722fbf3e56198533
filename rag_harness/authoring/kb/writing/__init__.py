"""Pages of a plan: by a grammar without a model, or by a model; checked as they come, and never written twice."""
