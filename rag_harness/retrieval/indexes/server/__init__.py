"""Collections on a Qdrant server or cluster: how they are made, who may change them, how they are filled and searched.

Nothing of this was tried against a server. What is sent is held against the client's own models by a stub, and what a
conditional write does against Qdrant's own engine, in Edge.
"""
