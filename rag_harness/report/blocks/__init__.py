"""A result file as arrays, a block of rows at a time: what tables are made of.

What a block holds depends on its lines, on the cases and on the measures, and on no run: which of its rows count is
asked when a table takes it. So it can be kept beside the rows (``stored``), made while they come (``keeping``), and
used for as long as all three are the same; whatever differs is read from the rows again.
"""
