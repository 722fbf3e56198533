"""Hidden text of Word: nobody sees it, and instructions for a model may stand in it."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree
from zipfile import ZIP_DEFLATED, ZipFile

from rag_harness.dataset.ingest.office.package import Element, OfficePackage, below, children, local, own

_MARK = b"vanish"
_NO = ("0", "false", "off")


def without_hidden_words(data: bytes, package: OfficePackage) -> tuple[bytes, int]:
    """Return the file without runs that are marked as hidden, and the number of their characters.

    Text that a style hides, or that has the colour of the page, is not found.
    """
    main = package.main()
    if _MARK not in b"".join(package.pieces(main)):
        return data, 0
    root = package.xml(main)
    hidden = 0
    for around in list(root.iter()):
        for run in [each for each in children(around, "r") if _is_hidden(each)]:
            hidden += sum(len("".join((text.text or "").split())) for text in below(run, "t"))
            around.remove(run)
    return _with_part(data, main, ElementTree.tostring(root)), hidden


def _is_hidden(run: Element) -> bool:
    marks = [each for about in children(run, "rPr") for each in about if local(each) == "vanish"]
    return any(own(each, "val") not in _NO for each in marks)


def _with_part(data: bytes, part: str, content: bytes) -> bytes:
    made = BytesIO()
    with ZipFile(BytesIO(data)) as old, ZipFile(made, "w", ZIP_DEFLATED) as new:
        for name in dict.fromkeys(old.namelist()):
            new.writestr(name, content if name == part else old.read(name))
    return made.getvalue()
