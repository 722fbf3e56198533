"""Knowledge bases and questions: what people write, or have written, before anything is evaluated.

``kb/`` plans and writes pages and checks them. ``questions/`` drafts questions of documents, has people review them,
and holds gold against documents that have changed. Commands and the plugin call this room. It never asks a pipeline,
and never imports plugin or commands. Public: what ``commands`` imports of it. Begin reading with
``questions/direct.py`` and ``kb/page.py``.
"""
