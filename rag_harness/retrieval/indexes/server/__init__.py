"""Collections on a Qdrant server or cluster: making, filling, searching.

None of this was tested with a server. A stub validates requests against the client's own models.
"""
