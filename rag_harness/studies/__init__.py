"""The shipped examples: what is evaluated, a folder each. A file is an experiment, and its name says which.

``retail/e3_filtered_rag.py`` is experiment ``e3`` and writes ``e3_filtered_rag.jsonl``; two underlines make a variant:
``textbook/t1__boost0.py`` is ``t1-boost0``. Such a file has a function ``build(parts) -> Experiment``; files of other
names are what the experiments of a folder share. A folder has its pipelines, its prompts and a docstring that says
where its gates, its data and its calibration stand.

Nothing imports this room: ``pipelines`` finds the files by their names. Studies import systems and foundations, and
of the evaluation only the judges, which the reliability engine asks before it answers. Begin reading with
``retail/e2_standard_rag.py``.
"""
