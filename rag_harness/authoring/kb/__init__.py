"""Knowledge bases: planned, written, and checked."""
