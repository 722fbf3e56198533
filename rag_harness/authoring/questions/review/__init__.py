"""The review of drafted questions: a person reads them with their evidence, and accepts, edits or rejects them.

reviewed_rows decisions about a row, and who made them; ``faults``: why a row may not be accepted
file          the file of the questions, written at every decision; rejected rows are in a file beside it; ``alone``
              locks it
chosen        which questions are shown
showing       the evidence of a question in its pages, and nearby passages
session       what each key does to the question; ``review_terminal`` reads keys, and ``view`` prints
page, taking  the same as one HTML file, and reading its decisions back
"""
