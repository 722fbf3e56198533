"""The scores of a run in other people's tools: files of tables, trackers of experiments, dashboards.

It reads the output folder and nothing else; ``scored_run`` says once what is exported, and a file a tool says it as
that tool takes it: names that it allows, a second export that changes nothing. ``commands`` calls it. A client is
imported where its tool is named. Public: ``read_scored_run``, ``TARGETS``. Begin reading with ``scored_run.py``.
"""
