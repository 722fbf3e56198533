"""What a service did: traces, metrics, logs, and what people thought of its answers."""
