"""The shipped examples of what is evaluated: one folder for each study. An experiment is a file, named after it.

``retail/e3_filtered_rag.py`` is experiment ``e3`` and writes ``e3_filtered_rag.jsonl``; two underlines make a variant:
``textbook/t3__rrf.py`` is ``t3-rrf``. Such a file has a function ``build(parts) -> Experiment``. Experiments that are
another one with a value changed are lines of ``variants``. Files with other names are shared by the experiments of a
folder. A folder has its pipelines, its prompts and a docstring that says where its gates, its data and its calibration
are.

Nothing imports this room: ``pipelines`` finds the files by their names. Studies import systems and foundations. From
the evaluation they import only the judges, which the reliability engine asks before it answers. Begin reading with
``retail/e2_standard_rag.py``.
"""
