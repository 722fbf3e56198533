"""Collections on a Qdrant server or cluster: making, leases, filling, searching.

None of this was tested with a server. A stub validates requests against the client's own models. Conditional writes are
tested with Qdrant's own engine, in Edge.
"""
