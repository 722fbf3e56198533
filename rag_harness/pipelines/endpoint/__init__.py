"""Any service as an experiment: what is sent and what is read are a few lines of TOML (docs/endpoints.md)."""
