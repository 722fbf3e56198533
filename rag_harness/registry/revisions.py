"""Revisions of the parts whose results ship or outlive a release: cuts, vectors, scores, answers and judgements.

A result is kept under the revision of what made it. Raise a revision by hand, to any text that it never had, when the
part gives other results for the same input; ``tests/revisions`` compares each part with stored results and says when.
Other code with the same results keeps its revision, so nothing that was kept becomes stale.
"""

from __future__ import annotations

from collections.abc import Mapping

# The first revision of each part is the digest of code that the shipped recordings were kept under, so no store had to
# be written again. The next one can be shorter.
REVISIONS: Mapping[str, str] = {
    "chunkers/fixed": "2703edb71a96b1c4",
    "chunkers/headings": "c0a7b9449e0127b0",
    "chunkers/plain": "451c5f940d201dd5",
    "chunkers/sections": "5982a8a3d704ba36",
    "chunkers/sliding": "92f908931fc62b05",
    "chunkers/summaries": "2",
    "chunkers/whole": "dccd7eba7dc007f1",
    "chunkers/windows": "31cc8fa8fc412bd4",
    "duplicates": "7d32a95b8253f5cb",
    "embedders/mock": "9191267cd7608486",
    "embedders/onnx": "581847353b61e816",
    "embedders/sentence_transformers": "951eddb616e4fadc",
    "rerankers/cross_encoder": "f79b5799f3022176",
    "rerankers/late_interaction": "7a372c1453d7438a",
    "rerankers/max_sim": "1b5c89158452b70f",
    "rerankers/mock": "333d5df220047968",
    "reader": "2",
    "judges/citations": "2",
    "judges/claim_by_claim": "2",
    "judges/criteria": "9606e499fef9e596",
    "judges/embedded": "3",
    "judges/encoder": "2",
    "judges/fused": "37fef35b66e3fd1b",
    "judges/mock": "mock0002",
    "judges/ragas": "6fee7f5957c0bf84",
    "judges/turns": "2",
    "reliability/signals": "a135267ea84a8c52",
    "knowledge_base/embedded_writer": "2fa6615359d3aa4c",
}
