"""Calls of models: endpoints by role, limits, budget, prompts, recordings, and adapters of technologies.

``endpoints`` hands out chat models, ``http_transport`` limits calls and charges for them, ``recording`` keeps
answers, ``reader`` is the embedded extractive reader. Pipelines, judges and authoring call it. It never knows what an
answer is for. Begin reading with ``endpoints.py`` and ``openai_chat.py``.
"""
