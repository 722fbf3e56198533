"""Every call of a model: endpoints by role, limits, budget, prompts, recordings, and an adapter a technology.

``endpoints`` hands out clients, ``metered`` makes each call wait its turn and pays for it, ``chat/``, ``embedders/``
and ``rerankers/`` speak to one technology a file, ``reader/`` is the embedded extractive reader, and ``recording/``
keeps what came back. Systems, judges and authoring call this room. It never knows what an answer is for. Begin reading
with ``endpoints.py``.
"""
