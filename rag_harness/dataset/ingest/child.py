"""The child process that reads and cuts files. It gets questions on its input and answers on its output.

A question is a line ``<kind> <bytes>``, then so many bytes, e.g. of a file. An answer is a line ``<bytes> more``, then
so many bytes, packed. The line ends with ``last`` if the process ends after the answer. It may be killed at any time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import BinaryIO

from rag_harness.dataset.ingest.parsed import Parsed, Passing, packed, packed_fault
from rag_harness.dataset.ingest.process_limits import MEMORY_BYTES, OUTPUT_BYTES, limit_next_file, limit_process
from rag_harness.errors import UnreadableError

PARSERS = {
    "txt": "rag_harness.dataset.ingest.plain:parse",
    "html": "rag_harness.dataset.ingest.html_pages:parse",
    "pdf": "rag_harness.dataset.ingest.pdf_pages:parse",
    "csv": "rag_harness.dataset.ingest.csv_tables:parse",
    "eml": "rag_harness.dataset.ingest.mails:parse",
    "openapi": "rag_harness.dataset.ingest.openapi.interface:parse",
    "docx": "rag_harness.dataset.ingest.office.word:parse",
    "pptx": "rag_harness.dataset.ingest.office.slides:parse",
    "xlsx": "rag_harness.dataset.ingest.office.sheets:parse",
}
"""The function for each kind of file: ``parse(data) -> Parsed``.

``txt@cp1252`` gives the charset of a file that does not state it.
Any other kind is ``package.module:function``, a function of a room above from bytes to an answer.
"""

_LONGEST_MESSAGE = 300


def parser_at(place: str) -> Callable[..., Parsed]:
    """Return the function at ``module:name``. Its module is imported here, and with it what such files need."""
    module, _, name = place.partition(":")
    found: Callable[..., Parsed] = getattr(import_module(module), name)
    return found


def serve() -> None:
    """Answer until the input ends or memory runs out. After running out, the process ends: its state is unknown."""
    questions, answers = sys.stdin.buffer, _own_output()
    limit_process()
    while question := questions.readline(200):
        kind, size = question.split()
        limit_next_file()
        answer = None
        with suppress(MemoryError):
            answer = _answer(kind.decode(), questions.read(int(size)))
        if answer is None:  # only here is the memory free again
            fault = Passing(f"takes more than {MEMORY_BYTES >> 20} MB of memory to read and cut. Split it")
            _send(answers, fault.packed(), b"last")
            return
        _send(answers, answer, b"more")


def _own_output() -> BinaryIO:
    """Return the pipe for answers. Whatever libraries print is discarded."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return answers


def _answer(kind: str, data: bytes) -> bytes:
    try:
        answer = _made(kind, data)
    except MemoryError:
        raise
    except UnreadableError as error:
        return packed_fault(str(error))
    except Exception as error:
        fault = f"cannot be parsed: {type(error).__name__}: {error}"[:_LONGEST_MESSAGE]
        return Passing(fault, chance=False).packed()
    return answer if len(answer) <= OUTPUT_BYTES else packed_fault(f"holds more than {OUTPUT_BYTES >> 20} MB of text")


def _made(kind: str, data: bytes) -> bytes:
    kind, _, charset = kind.partition("@")
    if kind not in PARSERS:
        module, _, function = kind.partition(":")
        work: Callable[[bytes], bytes] = getattr(import_module(module), function)
        return work(data)
    parse = parser_at(PARSERS[kind])
    return packed(parse(data, charset) if charset else parse(data))


def _send(answers: BinaryIO, answer: bytes, follows: bytes) -> None:
    answers.write(b"%d %s\n" % (len(answer), follows) + answer)
    answers.flush()
