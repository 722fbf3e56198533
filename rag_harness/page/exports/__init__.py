"""The scores of a run in other people's tools: files of tables, trackers of experiments, dashboards.

``scored_run`` says once what is exported, ``targets`` names the tools, and a module a tool says it as that tool takes
it: names that it allows, and nothing twice after a second export. Commands and the plugin call it. It reads the
output folder alone, and imports a client where its tool is named. Begin reading with ``scored_run.py``.
"""
