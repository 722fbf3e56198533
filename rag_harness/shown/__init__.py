"""What others wrote, shown so that it does nothing: a module for each medium.

``hidden``     characters that nobody sees, written out; every other module begins with it
``terminal``   lines on a terminal, and in the log of a CI job
``markdown``   GitHub's Markdown
``html``       text of a page
``cells``      CSV that a spreadsheet opens
``logs``       lines of a log file

A page, a question, an answer and a model's name are by others. They are kept as they are, and made inert where they are
shown.
"""
