"""The reliability engine: ``r1`` and its ablations, a file a step. Files named as in the folder above are experiments."""
