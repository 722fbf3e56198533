from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("transformers") else ["test_encoder.py", "test_encoder_judge.py"]
