"""Knowledge bases and questions: what is written before an evaluation, by rules, by models or by people.

``kb`` plans and writes pages and checks them, ``questions`` drafts questions from documents and has them reviewed,
``importing`` takes over questions of other tools. Commands and the plugin call it. It asks no pipeline, and imports
of the evaluation only kinds of expectations. Begin reading with ``questions/generator.py`` and
``kb/page_writing.py``.
"""
