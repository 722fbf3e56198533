"""Writes the pages of a plan, by a grammar or by a model. Each is checked at once and never written twice."""
