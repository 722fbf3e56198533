"""Why trials failed, and trials derived from those of a run with one thing changed.

``interventions`` change one thing of a failed trial, ``reruns`` answers it again by the engine of the run, ``rules``
find the cause. ``metamorphic`` changes questions and sources, ``tuning`` has configurations race. Plugin, report and
commands call it. It never changes a row of the run itself. Begin reading with ``explainer.py``.
"""
