"""Record and replay: what a model returned once is not asked for again."""
