"""Decompression of a reply piece by piece, with a limit of its size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from rag_harness.core.errors import ModelOutputError

# A few kilobytes of gzip may decompress to gigabytes. So the bytes are counted, and never more than one piece is
# decompressed at once.

MOST_REPLY_BYTES = 20 * 2**20
"""Most bytes of a decompressed reply: fifty times the default longest answer, as each word has an event around it."""
PACKINGS = "gzip, deflate"
"""The encodings that requests accept and this module can decompress."""
_PIECE = 2**16


class Decompressor:
    """Decompresses the body of one reply and counts its bytes.

    Args:
        server: the server's name, for messages.
        packing: the header ``content-encoding``; empty without one.
        most: most bytes after decompression.

    Raises:
        ModelOutputError: the encoding is not one that the request accepts.
    """

    def __init__(self, server: str, packing: str = "", most: int = MOST_REPLY_BYTES) -> None:
        self._server, self._most, self._size = server, most, 0
        self._kind = packing.strip().lower()
        if self._kind not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ModelOutputError(
                f"{server} packed its answer with {packing[:40]!r}; {PACKINGS} can be unpacked. Have it, or the proxy "
                f"before it, send answers as they are."
            )
        self._head, self._engine = b"", zlib.decompressobj(16 + zlib.MAX_WBITS)

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes of ``part``, in pieces.

        Raises:
            ModelOutputError: there are more bytes than allowed.
            ValueError: the bytes do not have the encoding of the header.
        """
        if self._kind in ("", "identity"):
            yield self._counted(part)
            return
        part, piece = self._begun(part), b""
        while not self._engine.eof and (part or len(piece) == _PIECE):
            try:
                piece = self._engine.decompress(part, _PIECE)
            except zlib.error as error:
                raise ValueError(f"the reply is not packed as its header says ({self._kind}): {error}") from None
            part = self._engine.unconsumed_tail
            if piece:
                yield self._counted(piece)

    def _begun(self, part: bytes) -> bytes:
        """Return the bytes to decompress now. The first two bytes of "deflate" show whether zlib's header is there."""
        if self._kind != "deflate" or len(self._head) == 2:
            return part
        part = self._head + part
        self._head = part[:2]
        if len(self._head) < 2:
            return b""
        has_header = self._head[0] & 0x0F == 8 and int.from_bytes(self._head, "big") % 31 == 0  # RFC 1950, 2.2
        self._engine = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        return part

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > self._most:
            raise ModelOutputError(
                f"{self._server} answered with more than {self._most / 2**20:g} MB, and was cut off there. Have it "
                f"send what is read: the answer, and the contexts that it is from."
            )
        return piece
