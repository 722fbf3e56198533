"""The report for sharing: one HTML file that opens offline, and Markdown for a pull request.

A section (``sections/``) is a function of the runs. It returns its figures once, as ``content``; ``html`` shows them.
``payload/`` packs every trial for the page's script, which filters and opens them. ``comment/`` writes the Markdown: a
run in brief.

The plugin and ``rag-harness report`` call this room. It reads ``report``'s tables, and never computes a figure of its
own that the terminal does not have. Begin reading with ``html.py``.
"""
