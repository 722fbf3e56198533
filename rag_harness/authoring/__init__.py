"""Knowledge bases and questions: everything that is written before an evaluation, by people or by models.

``kb/`` plans and writes pages and checks them. ``questions/`` drafts questions from documents, lets people review them,
and checks gold after documents have changed. Commands and the plugin call this room. It never asks a pipeline, and
never imports plugin or commands. Public: what ``commands`` imports from here. Begin reading with
``questions/direct.py`` and ``kb/page.py``.
"""
