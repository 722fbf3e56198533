"""Tuning: the better configuration of a pipeline, and how sure that is.

``space`` has the parameters, ``trials`` asks the configurations, ``race`` lets them race, ``outcome`` is what is
kept. Plugin, commands and page call it. It never chooses by questions on which it reports. Begin reading with
``tuner.py``.
"""
