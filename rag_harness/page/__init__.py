"""The report that people send to each other: one HTML file that opens offline, and Markdown for a pull request.

A section (``sections/``) is a function of the runs that says its figures once, as ``content``; ``html`` and
``markdown`` show it. What the page's script filters and opens, every trial, is packed by ``payload/``.
"""
