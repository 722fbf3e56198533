"""Services as experiments. A few lines of TOML describe the request and the answer (docs/how-to/endpoints.md)."""
