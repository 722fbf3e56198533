"""Apps under test whose spans say what they did: an app that answers, and its trace as a pipeline's output.

The plugin calls this room. ``traces`` reads the spans; here they meet the documents of the run. Begin reading with
``traced_pipeline.py``.
"""
