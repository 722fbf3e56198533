"""Every number of a page's tables, computed once more from the files alone: nothing of the harness is imported here.

``python -m tests.unit.page.recount PAGE.html OUTPUT [OTHER …]`` says what differs.
"""
