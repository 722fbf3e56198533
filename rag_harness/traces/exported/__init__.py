"""Files of spans: OTLP/JSON, and what Phoenix and Langfuse export. Begin reading with ``trace_file.py``."""
