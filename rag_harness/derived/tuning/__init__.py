"""Finds the better configuration of a pipeline, and says how sure that is.

A space of parameters (``space``, read by ``space_file``) is a list of ``contenders``, each an experiment. ``asking``
has them answered: what they find first, without a model. In ``racing`` they are held against each other on questions in
one random order; those that are shown to be worse leave. ``split`` sets questions apart that the race never sees;
``race_judging`` has answers judged where the objective is; ``outcome`` has the figure of the winner on what was held
out, ``outcome_text`` says it, ``tuned_file`` writes it down.
``tuner`` puts it together. Rows lie in ``output/derived/tune+….jsonl``, the outcome in ``output/tune.json``.

``rag-harness tune`` and the plugin call this room. It never judges a gate. Begin reading with ``tuner.py``.
"""
