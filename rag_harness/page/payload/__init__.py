"""Every trial for the page's script, small: texts once, columns before rows, details in blocks that are unpacked late.

``index`` (what is filtered and sorted), ``texts`` (chunks and other long texts, once each) and ``trials-0`` …
(details of so many trials each) are JSON, and stand in the page as gzip in base64. The script is their only reader:
what they hold is written down in the functions that make it.
"""
