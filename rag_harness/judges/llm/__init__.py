"""Judges that ask a chat model of role ``judge``: ``fused`` makes few calls, ``ragas`` makes the calls of RAGAS."""
