"""Files of rows and of judged scores as arrays, a block of lines at a time: what tables are made of.

What a block holds depends on its lines, on the cases and, of rows, on the measures, and on no run: which of its lines
count is asked when a table takes it. So it can be kept beside the file (``shelf``), made while lines come
(``keeping``), and used for as long as all of that is the same; whatever differs is read from the lines again.
"""
