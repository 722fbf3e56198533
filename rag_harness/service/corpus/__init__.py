"""The documents of a service: collections of tenants that change while they are searched.

``intake`` takes a document, ``preparation`` cuts and embeds it, ``document_table`` is the truth about it, ``search``
answers from one state of all. ``service`` calls it. A kill between two steps leaves nothing half there. Begin reading
with ``tenant_collections.py``.
"""
