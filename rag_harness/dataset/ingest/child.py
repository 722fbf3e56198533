"""The process that reads and cuts files: asked over its input, answers over its output, and is killed without harm.

A question is a line ``<kind> <bytes>`` and those bytes, of a file say; an answer a line
``<bytes> more`` and those bytes, packed; ``last`` instead of ``more`` where the process ends behind it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import BinaryIO

from rag_harness.dataset.ingest.limits import MEMORY_BYTES, OUTPUT_BYTES, limit_next_file, limit_process
from rag_harness.dataset.ingest.parsed import Parsed, Passing, packed, packed_fault
from rag_harness.errors import UnreadableError

KINDS = {"txt": "plain", "html": "html_pages", "pdf": "pdf_pages"}
"""Each kind of file with the module beside this one that parses it: ``parse(data) -> Parsed``.

``txt@cp1252`` names the charset of a file that does not say it.
Another kind is work of a room above, ``package.module:function``, from bytes to an answer.
"""

_LONGEST_MESSAGE = 300


def serve() -> None:
    """Answer until the input ends, or memory did not suffice: what is left of it then is nobody's to say."""
    questions, answers = sys.stdin.buffer, _own_output()
    limit_process()
    while question := questions.readline(200):
        kind, size = question.split()
        limit_next_file()
        answer = None
        with suppress(MemoryError):
            answer = _answer(kind.decode(), questions.read(int(size)))
        if answer is None:  # only here is what took the memory free again
            fault = Passing(f"takes more than {MEMORY_BYTES >> 20} MB of memory to read and cut. Split it")
            _send(answers, fault.packed(), b"last")
            return
        _send(answers, answer, b"more")


def _own_output() -> BinaryIO:
    """Keep the pipe for answers: whatever a library prints goes nowhere."""
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
    if kind not in KINDS:
        module, _, function = kind.partition(":")
        work: Callable[[bytes], bytes] = getattr(import_module(module), function)
        return work(data)
    parse: Callable[..., Parsed] = import_module(f"rag_harness.dataset.ingest.{KINDS[kind]}").parse
    return packed(parse(data, charset) if charset else parse(data))


def _send(answers: BinaryIO, answer: bytes, follows: bytes) -> None:
    answers.write(b"%d %s\n" % (len(answer), follows) + answer)
    answers.flush()
