"""Parquet files of chunks with vectors, and their metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.types import Chunk, Matrix

METADATA_KEY = b"rag_harness"
"""Key in the file's metadata of ``about``, as JSON."""


def part_bytes(chunks: Sequence[Chunk], vectors: Matrix, about: Mapping[str, Any]) -> bytes:
    """Return a Parquet file with one row for each chunk. ``vectors`` has shape (n, d); ``about`` says what made them.

    Columns: chunk_id, doc_id, text, start, end (offsets in the document's text), section (headings, outermost first),
    index, repeated_header, metadata (JSON), page, last_page, vector (d float32, unit length).
    """
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(_columns(chunks) | {"vector": _list_array(vectors)})
    said = json.dumps(dict(about), sort_keys=True, default=str)
    table = table.replace_schema_metadata({METADATA_KEY: said})
    sink = pyarrow.BufferOutputStream()
    # Vectors are hardly ever equal, so a dictionary of them would only cost memory.
    repeated = ["doc_id", "metadata", "repeated_header"]
    pyarrow.parquet.write_table(table, sink, compression="zstd", compression_level=1, use_dictionary=repeated)
    return bytes(sink.getvalue().to_pybytes())


def about_part(stream: Any) -> tuple[int, dict[str, Any]] | None:
    """Return the number of chunks of an open Parquet file and its ``about``; None where the file is no part."""
    import pyarrow
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.read_metadata(stream)
        return found.num_rows, json.loads((found.metadata or {})[METADATA_KEY])
    except (pyarrow.ArrowInvalid, KeyError, ValueError):
        return None


def _columns(chunks: Sequence[Chunk]) -> dict[str, Any]:
    import pyarrow

    whole = {
        "chunk_id": ([_text(chunk.chunk_id) for chunk in chunks], pyarrow.string()),
        "doc_id": ([_text(chunk.doc_id) for chunk in chunks], pyarrow.string()),
        "text": ([_text(chunk.text) for chunk in chunks], pyarrow.string()),
        "start": ([chunk.start for chunk in chunks], pyarrow.int64()),
        "end": ([chunk.end for chunk in chunks], pyarrow.int64()),
        "section": ([[_text(each) for each in chunk.section] for chunk in chunks], pyarrow.list_(pyarrow.string())),
        "index": ([chunk.index for chunk in chunks], pyarrow.int32()),
        "repeated_header": ([_text(chunk.repeated_header) for chunk in chunks], pyarrow.string()),
        "metadata": ([_json(chunk.metadata) for chunk in chunks], pyarrow.string()),
        "page": ([chunk.pages[0] if chunk.pages else None for chunk in chunks], pyarrow.int32()),
        "last_page": ([chunk.pages[1] if chunk.pages else None for chunk in chunks], pyarrow.int32()),
    }
    return {name: pyarrow.array(values, kind) for name, (values, kind) in whole.items()}


def _list_array(vectors: Matrix) -> Any:
    import numpy as np
    import pyarrow

    flat = pyarrow.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
    return pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def _json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), sort_keys=True, default=str) if metadata else "{}"


def _text(text: str) -> str:
    """Return text that UTF-8 can hold. A lone surrogate becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
