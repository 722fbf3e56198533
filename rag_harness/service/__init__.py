"""One experiment behind HTTP: what was evaluated is what is deployed. Needs the extra ``service``."""
