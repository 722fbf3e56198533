"""Packs every trial for the page's script in little space: texts once, columns instead of rows, details in late blocks.

``index`` (for filters and sorting), ``texts`` (chunks and other long texts, once each) and ``trials-0`` … (details of
some trials each) are JSON. In the page they are gzip in base64. Only the script reads them; the functions that make
them document their format.
"""
