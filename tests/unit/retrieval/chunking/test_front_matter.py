"""Front matter, read for what names a page's place in a book."""

from __future__ import annotations

import pytest

from rag_harness.retrieval.chunking.packing import front_matter


def test_plain_values_quotes_numbers_and_comments() -> None:
    text = (
        "\ufeff---\r\n# a note\r\nmodule: 4\r\ntitle: 'Learning: by doing'\r\nurl: /m-4#x  # the address\r\n"
        "chapter: 01\r\nempty:\r\ntags: [a, b]\r\nlist:\r\n  - nested: 1\r\n...\r\nmodule: 5\r\n"
    )
    assert front_matter(text) == {"module": 4, "title": "Learning: by doing", "url": "/m-4#x", "chapter": "01"}


@pytest.mark.parametrize("text", ["", "module: 4\n", "---\n\nmodule: 4\n---\n", "# Page\n\n---\nmodule: 4\n---\n"])
def test_what_is_no_front_matter_gives_nothing(text: str) -> None:
    assert front_matter(text) == {}


def test_the_last_of_two_equal_keys_counts() -> None:
    assert front_matter("---\nmodule: 1\nmodule: 2\n---\n") == {"module": 2}
