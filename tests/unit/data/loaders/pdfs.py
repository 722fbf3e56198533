"""PDFs made by hand, whole and broken ones."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def pdf(objects: Sequence[bytes], root: int = 1, extra: bytes = b"") -> bytes:
    """Return a file of ``objects``, numbered from 1, with its table."""
    body, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<< /Size %d /Root %d 0 R %s >>\n" % (len(objects) + 1, root, extra)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    return bytes(body) + head + table + trailer + b"startxref\n%d\n%%%%EOF\n" % len(body)


def stream(content: bytes, about: bytes = b"") -> bytes:
    """Return a stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), about, content)


def packed(content: bytes) -> bytes:
    """Return a stream that was compressed."""
    return stream(zlib.compress(content, 1), b"/Filter /FlateDecode")


def drawing(text: str) -> bytes:
    """Return what draws lines of ``text`` on a page."""
    lines = [line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in text.split("\n")]
    shown = b" ".join(b"(%s) Tj T*" % line.encode("latin-1", "replace") for line in lines)
    return b"BT /F1 11 Tf 14 TL 50 780 Td " + shown + b" ET"


def pages_of(contents: Sequence[bytes], title: str = "") -> bytes:
    """Return a file with a page of each content stream."""
    count = len(contents)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, content in enumerate(contents):
        about = b"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 595 842]"
        objects.append(b"<< /Type /Page /Parent 2 0 R %s /Contents %d 0 R >>" % (about, 5 + 2 * number))
        objects.append(content)
    objects.append(b"<< /Title (%s) >>" % title.encode("latin-1"))
    return pdf(objects, extra=b"/Info %d 0 R" % len(objects))


def book(*pages: str, title: str = "") -> bytes:
    """Return a file with these pages."""
    return pages_of([packed(drawing(page)) for page in pages], title)


def encrypted(revision: int) -> bytes:
    """Return a file that is encrypted with AES and the empty password: revision 4 has 128 bits, 6 has 256."""
    from pypdf._encryption import AlgV4

    owner = bytes(32)
    key = AlgV4.compute_key(b"", 4, 128, owner, (1 << 32) - 4, b"\0", True)
    user = AlgV4.compute_U_value(key, 4, b"\0")
    four = b"/V 4 /Length 128 /O <%s> /U <%s>" % (owner.hex().encode(), user.hex().encode())
    six = b"/V 5 /Length 256 /O <%s> /U <%s> /OE <%s> /UE <%s> /Perms <%s>" % tuple(
        b"00" * length for length in (48, 48, 32, 32, 16)
    )
    cipher = b"/CF << /StdCF << /CFM /AESV%d /AuthEvent /DocOpen >> >> /StmF /StdCF /StrF /StdCF" % (revision // 2)
    about = b"/Filter /Standard /P -4 /R %d %s %s" % (revision, four if revision == 4 else six, cipher)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font << >> >> /Contents 4 0 R >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page,
        stream(bytes(32)),
    ]
    return pdf(objects, extra=b"/Encrypt << %s >> /ID [<00> <00>]" % about)
