"""Knowledge bases: planned, written, and checked.

Two planners make a ``plan``: from shipped domains, and by asking a model. ``page_writing`` writes its pages and
checks each before it is kept; ``validation`` checks files that anybody wrote. Commands and ``questions`` call it. It
never changes a page that a person has edited. Begin reading with ``plan.py``.
"""
