"""A person reads drafted questions with their evidence: accepts, edits, rejects.

rows          what is decided of a row, and by whom; ``faults`` why it may not be accepted
file          the file of the questions, kept at every decision; rejected rows lie beside it; ``alone`` locks it
chosen        which of its questions are shown
showing       a question's evidence in its pages, and what is near it
session       a key pressed -> what becomes of the question; ``terminal`` and ``view`` are how one sees and presses
page, taking  the same as one HTML file, and what was decided on it taken back
"""
