"""Files of spans: lines of OTLP/JSON, and what Phoenix and Langfuse export. Begin reading with ``trace_file.py``."""
