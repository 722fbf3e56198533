"""Users that are simulated: they play a scenario, and say what comes next in a conversation, or that it is over.

``engine.played_turns`` asks one before each turn. It sees what was said, and never the gold. Without a model a script
plays (``script``), else a model of role ``user`` (``model_user``). ``role`` has the rules by which what a user says
follows from its scenario. The room knows neither rows nor experiments. Begin reading with ``moves.py``.
"""
