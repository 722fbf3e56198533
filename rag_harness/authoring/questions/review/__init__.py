"""The review of drafted questions: a person reads them with their evidence, and accepts, edits or rejects them.

reviewed_rows decisions about a row, and who made them; ``faults``: why a row may not be accepted
file          the file of the questions, whole at every moment; rejected rows are in a file beside it; ``alone``
              locks it
chosen        which questions are shown
showing       the evidence of a question in its pages, and nearby passages
page, taking  one HTML file on which a person decides, and reading its decisions back
"""
