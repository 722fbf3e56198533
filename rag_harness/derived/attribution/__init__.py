"""Why trials failed: run again with one thing changed, and read together with the gold."""
