"""Record and replay: an answer that was recorded is not requested again.

``cassettes`` finds a recording by its request, ``playback`` decides by the mode, ``patches`` does the same for the
calls of a user's own pipeline. Models, pipelines and frontends call it. No key reaches a file: ``scrubbing`` removes
them. Begin reading with ``playback.py``.
"""
