"""Files whole or not there, lines of JSON, digests, the log."""
