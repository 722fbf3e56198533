"""An Office file: a ZIP archive of XML parts. It is checked before a reader sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from posixpath import dirname, join, normpath
from xml.etree import ElementTree
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from rag_harness.dataset.ingest.other_kinds import ZIP, check_encrypted, check_kind, office_kind
from rag_harness.dataset.ingest.process_limits import UNPACKED_BYTES
from rag_harness.errors import UnreadableError

Element = ElementTree.Element
_MOST_PARTS = 20_000
_TYPES = "[Content_Types].xml"
_XML = (".xml", ".rels", ".vml")
_PIECE = 4096
_LONGEST_TITLE = 300


class OfficePackage:
    """The parts of a file of one kind. Sizes are what the archive says, and no part gives more.

    Raises:
        UnreadableError: it is encrypted, of another kind, damaged, too large, or declares entities.
    """

    def __init__(self, data: bytes, suffix: str) -> None:
        check_encrypted(data, suffix)
        try:
            self._zip = ZipFile(BytesIO(data))
            self._check_size()
            self._check_kind(suffix)
            self._check_entities()
        except BadZipFile:
            begins_well = data.startswith(ZIP)
            if not begins_well:
                check_kind(data, suffix)
            what = "but the rest of it is damaged" if begins_well else "and this is something else"
            raise UnreadableError(f"is no {suffix}: such a file is a ZIP archive, {what}. Save it anew") from None

    def __contains__(self, part: object) -> bool:
        return part in self._names

    def xml(self, part: str) -> Element:
        """Return the root of a part.

        Raises:
            UnreadableError: the part is missing or damaged.
        """
        try:
            return ElementTree.fromstring(self._zip.read(part))
        except (KeyError, ElementTree.ParseError, BadZipFile) as error:
            raise UnreadableError(f"its part {part} is missing or damaged: {error}"[:300]) from None

    def pieces(self, part: str) -> Iterator[bytes]:
        """Yield the bytes of a part, piece by piece."""
        with self._zip.open(part) as stream:
            while piece := stream.read(_PIECE):
                yield piece

    def main(self) -> str:
        """Return the name of the part that is the document."""
        return self.related("", "officeDocument")[0]

    def related(self, part: str, kind: str) -> list[str]:
        """Return the names of the parts that ``part`` uses as ``kind``. Addresses outside the file are left out."""
        return [name for name, found in self.targets(part).values() if found == kind]

    def targets(self, part: str) -> dict[str, tuple[str, str]]:
        """Return name and kind of each part that ``part`` uses, by the id of the relation."""
        relations = join(dirname(part), "_rels", f"{part.rpartition('/')[2]}.rels")
        if relations not in self:
            return {}
        found = {}
        for each in self.xml(relations):
            target, kind = each.get("Target", ""), each.get("Type", "").rpartition("/")[2]
            name = normpath(join("/", dirname(part), target)).lstrip("/")
            if each.get("TargetMode") != "External" and name in self:
                found[each.get("Id", "")] = (name, kind)
        return found

    def title(self) -> str:
        """Return the title in the properties of the file; empty where there is none."""
        for part in self.related("", "core-properties"):
            with suppress(UnreadableError):
                texts = (each.text or "" for each in self.xml(part) if local(each) == "title")
                return " ".join(next(texts, "").split())[:_LONGEST_TITLE]
        return ""

    def _check_size(self) -> None:
        parts = self._zip.infolist()
        self._names = {each.filename for each in parts}
        size = sum(each.file_size for each in parts)
        if size > UNPACKED_BYTES:
            raise UnreadableError(f"unpacks to {size >> 20:,} MB, more than {UNPACKED_BYTES >> 20}. Split it")
        if len(parts) > _MOST_PARTS:
            raise UnreadableError(f"has {len(parts):,} parts, more than {_MOST_PARTS:,}. Split it")
        if any(each.flag_bits & 1 for each in parts):
            raise UnreadableError("is encrypted. Save it without its password")

    def _check_kind(self, suffix: str) -> None:
        found = office_kind(self._zip.read(_TYPES)) if _TYPES in self else ""
        if found != suffix:
            what = f"a {found}" if found else "a ZIP archive of something else"
            raise UnreadableError(f"is no {suffix}, but {what}. Give it the suffix of its kind")
        if not self.related("", "officeDocument"):
            raise UnreadableError(f"is no whole {suffix}: its document is missing. Save it anew")

    def _check_entities(self) -> None:
        """Refuse a declaration of entities, which no program of Office writes: they could grow, or name files."""
        for part in sorted(self._names):
            if part.lower().endswith(_XML) and _declares(self.pieces(part)):
                raise UnreadableError(f"its part {part} has a DOCTYPE, which Office files never have. Save it anew")


class _Seen(Exception):  # noqa: N818 - it ends the reading of a head
    pass


def _declares(pieces: Iterator[bytes]) -> bool:
    """Return whether XML has a DOCTYPE, which stands before its first element."""
    found: list[str] = []
    parser = expat.ParserCreate()

    def doctype(*_: object) -> None:
        found.append("doctype")
        raise _Seen

    def element(*_: object) -> None:
        raise _Seen

    parser.StartDoctypeDeclHandler, parser.StartElementHandler = doctype, element
    with suppress(_Seen, expat.ExpatError):  # what is damaged, the reader of the part says
        for piece in pieces:
            parser.Parse(piece)
    return bool(found)


def local(element: Element) -> str:
    """Return the name of an element without its namespace: those of ISO's strict files differ."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def own(element: Element, name: str) -> str | None:
    """Return an attribute by its name without a namespace."""
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), None)


def children(element: Element, name: str) -> list[Element]:
    """Return the children of that name."""
    return [each for each in element if local(each) == name]


def below(element: Element, name: str) -> Iterator[Element]:
    """Yield all elements of that name inside."""
    return (each for each in element.iter() if local(each) == name)
