"""``queries review``."""
