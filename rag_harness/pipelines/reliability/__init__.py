"""The reliability engine: ``r1`` and its ablations, a file a step; those named as in the room above are experiments."""
