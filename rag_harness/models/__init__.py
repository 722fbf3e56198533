"""Calls of models: endpoints by role, limits, budget, prompts, recordings, and one adapter for each technology.

``endpoints`` hands out clients. ``metered`` limits calls and charges for them. Each file of ``chat/``, ``embedders/``
and ``rerankers/`` is the adapter of one technology. ``reader/`` is the embedded extractive reader. ``recording/`` keeps
answers. Systems, judges and authoring call this room. It never knows what an answer is for. Begin reading with
``endpoints.py``.
"""
