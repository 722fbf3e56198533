"""Turns files of rows and of judged scores into arrays, a block of lines at a time. Tables are made of these blocks.

A block depends only on its lines, on the cases and, for rows, on the measures. It does not depend on the run: the table
decides which of its lines count. So a block can be kept beside the file (``shelf``), or be made while lines are written
(``keeping``), and is used as long as all of these are unchanged. Otherwise the lines are read again.
"""
