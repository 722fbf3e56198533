"""What is shared of a run: one HTML file that opens offline, Markdown for a pull request, and exports.

A section is a function of the runs; ``html`` shows its content, ``payload`` packs every trial for the page's script,
``comment`` is a run in brief. Plugin and commands call it. It reads tables, and shows no figure that the terminal
does not have. Begin reading with ``report.py`` and ``content.py``.
"""
