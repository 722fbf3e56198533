"""Safe output of text that others wrote: one module for each medium.

``hidden``     invisible characters, written as escapes; all other modules use it
``terminal``   lines on a terminal, and in the log of a CI job
``markdown``   GitHub's Markdown
``html``       text of an HTML page
``cells``      CSV that a spreadsheet opens
``logs``       lines of a log file
``every_page`` the styles and the script that every page begins with, in ``assets/``

Pages, questions, answers and names of models come from others. They are stored unchanged, and made harmless when they
are shown.

Every room that prints or writes a page calls this room. It knows no noun of the harness. Begin reading with
``hidden.py``.
"""
