"""Services as experiments. A few lines of TOML describe request and answer (docs/how-to/endpoints.md).

``requests`` makes the requests, ``client`` finds a recording or calls, ``answer`` reads the reply and
finds the documents of its contexts. ``pipelines`` and commands call it. It knows no gold. Begin reading with
``experiment.py``.
"""
