from __future__ import annotations

import pytest

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.json_text import DEEPEST_JSON
from rag_harness.pipelines.endpoint.decoders import parsed_json


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"<html><body>Login</body></html>", "text/html; charset=utf-8", "text/html that is no JSON but a page"),
        (b'{"answer": "45 da', "application/json", "it looks cut short"),
        (b'{"answer": "45 days"', "application/json", "it looks cut short"),
        (b"nope", "text/plain", "text/plain that is no JSON"),
        (b"", "application/json", "answered with nothing"),
        (b' \xff{"a": 1}', "application/json", "no UTF-8, at byte 1"),
        (b'{"score": NaN}', "application/json", "NaN is no JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b"[" * 1_000_000, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b"9" * 5000, "application/json", "no JSON"),
    ],
)
def test_what_is_no_answer_is_named(content: bytes, kind: str, said: str) -> None:
    with pytest.raises(ModelOutputError) as error:
        parsed_json(content, "my_service", kind)
    assert said in str(error.value)
    assert str(error.value).startswith("my_service answered with")
    assert len(error.value.raw) <= 4000


def test_a_mark_of_byte_order_and_breadth_are_no_fault() -> None:
    assert parsed_json(b'\xef\xbb\xbf{"a": 1}', "a", "") == {"a": 1}
    assert len(parsed_json(b"[" + b",".join([b"[]"] * 5000) + b"]", "a", "")) == 5000
    assert parsed_json(b"[" * DEEPEST_JSON + b"]" * DEEPEST_JSON, "a", "") is not None
