"""Tables, summaries, comparisons and baselines, made from ``output/`` and nothing else.

``reader`` reads a folder into a ``SuiteTable`` for each experiment, ``trials`` gives its records (``load_results``).
The plugin, notebooks, diagnosis and page call it. It never runs a trial and never judges an answer: every figure
comes from result files. Begin reading with ``reader.py`` and ``suite_table.py``.
"""
