"""Judges that ask a chat model of role ``judge``: ``fused`` asks little, ``ragas`` asks what RAGAS asks."""
