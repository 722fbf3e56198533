"""Files are parsed in a process that can be lost, and decoded in their charset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from rag_harness.core import processes
from rag_harness.core.errors import UnreadableError
from rag_harness.data.documents import files_below, load, page_files
from rag_harness.data.loaders import reading
from rag_harness.data.loaders.child_process import Child, Parsed, Passing, PassingError, packed, packed_fault, unpacked
from rag_harness.data.loaders.html_pages import parse as parse_page
from rag_harness.data.loaders.reading import reading as shared
from rag_harness.data.loaders.text import Decoded, checked_text, decoded, garbage, parse_text
from tests.unit.data.loaders.pdfs import book

# Files are parsed in a process that can be lost, and each content once.


def write(folder: Path, **files: bytes) -> dict[str, Path]:
    made = {name: folder / name.replace("_", ".") for name in files}
    for name, content in files.items():
        made[name].write_bytes(content)
    return made


def test_each_kind_is_read_through_its_loader(tmp_path: Path) -> None:
    files = write(tmp_path, a_txt=b"plain text", b_HTM=b"<title>B</title><p>page<p hidden>x", c_pdf=book("One", "Two"))
    with shared() as going_on:
        text, page, paper = (load(file, file.name) for file in files.values())
        assert going_on.child.started == 1
    assert (text.text, text.title) == ("plain text", "a")
    assert (page.text, page.title, page.metadata) == ("page\n", "B", {"hidden_characters": 1})
    assert (paper.text, paper.pages) == ("One\n\nTwo", (0, 5))


def test_a_content_is_parsed_once_wherever_it_lies(tmp_path: Path) -> None:
    files = write(tmp_path, a_html=b"<p>text", b_html=b"<p>text", c_html=b"<p>more", d_html=b"@#$% " * 100)
    for parsed_now in (3, 0):
        with shared(tmp_path / "cache", writes=True) as going_on:
            assert [load(files[name], "x").text for name in ("a_html", "b_html", "c_html")][1:] == ["text\n", "more\n"]
            with pytest.raises(UnreadableError, match="garbage"):
                load(files["d_html"], "x")
        assert going_on.parsed == parsed_now
        assert going_on.child.started == (parsed_now > 0)


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, b"garbage"])
def test_what_was_kept_and_is_damaged_is_parsed_again(tmp_path: Path, damage: bytes) -> None:
    files = write(tmp_path, a_txt=b"text")
    for now in (1, 1, 0):
        with shared(tmp_path / "cache", writes=True) as going_on:
            assert load(files["a_txt"], "x").text == "text"
        assert going_on.parsed == now
        (kept,) = (file for file in (tmp_path / "cache").rglob("*") if file.is_file() and file.suffix != ".lock")
        if now and kept.read_bytes() != damage and not (tmp_path / "damaged").exists():
            kept.write_bytes(damage)
            (tmp_path / "damaged").touch()


@pytest.mark.parametrize("stranger", [os.mkfifo, Path.mkdir, lambda file: file.symlink_to("/dev/zero")])
def test_what_is_no_file_among_what_was_kept_is_passed_over(tmp_path: Path, stranger: Callable[[Path], object]) -> None:
    files = write(tmp_path, a_txt=b"text")
    for _ in range(2):
        with shared(tmp_path / "cache", writes=True) as going_on:
            assert load(files["a_txt"], "x").text == "text"
        assert going_on.parsed == 1
        for kept in [each for each in (tmp_path / "cache").rglob("*") if each.is_file() and each.suffix != ".lock"]:
            kept.unlink()
            stranger(kept)


def test_processes_that_read_the_same_folder_parse_each_file_once(tmp_path: Path) -> None:
    files = write(tmp_path, a_txt=b"text", b_html=b"<p>more")

    def read() -> int:
        with shared(tmp_path / "cache", writes=True) as going_on:
            assert [load(file, "x").text for file in files.values()] == ["text", "more\n"]
        return going_on.parsed

    with ThreadPoolExecutor(3) as readers:
        parsed = [each.result(30) for each in [readers.submit(read) for _ in range(3)]]
    assert sorted(parsed) == [0, 0, 2]


def test_another_parser_parses_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write(tmp_path, a_txt=b"text")
    for version in ("1", "2"):
        monkeypatch.setattr(reading, "_parser", lambda version=version: version)
        with shared(tmp_path / "cache", writes=True) as going_on:
            load(files["a_txt"], "x")
        assert going_on.parsed == 1


def test_a_fault_that_may_not_come_again_is_kept_for_one_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write(tmp_path, a_html=b'<a x="' * 20_000, b_pdf=b"%PDF-1.7\nno PDF")
    parsed_now = []
    for run, seconds in (("1", 0.2), ("1", 30.0), ("2", 0.2)):
        monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", run)
        with shared(tmp_path / "cache", writes=True) as going_on:
            going_on.child = Child(seconds)
            for file, why in ((files["b_pdf"], "PdfStreamError|took"), (files["a_html"], r"took more than 0\.2 s")):
                with pytest.raises(UnreadableError, match=why):
                    load(file, "x")
            parsed_now.append(going_on.parsed)
    assert parsed_now == [2, 0, 2]


def test_the_packages_that_decrypt_name_what_was_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = reading._parser.__wrapped__()
    monkeypatch.setattr(reading, "_version", lambda library: "1" if library == "cryptography" else "")
    named = reading._parser.__wrapped__()
    monkeypatch.setattr(reading, "_version", lambda library: "")
    assert len({before, named, reading._parser.__wrapped__()}) == 3


def test_nothing_is_kept_where_nothing_may_be_written(tmp_path: Path) -> None:
    files = write(tmp_path, a_txt=b"text")
    with shared(tmp_path / "cache"):
        load(files["a_txt"], "x")
    assert not (tmp_path / "cache").exists()


def test_a_file_that_takes_too_long_costs_itself_alone(tmp_path: Path) -> None:
    child = Child(seconds=0.2)
    try:
        with pytest.raises(UnreadableError, match=r"took more than 0\.2 s"):
            child.answer("html", b'<a x="' * 20_000)
        child._seconds = 20
        assert unpacked(child.answer("html", b"<p>text")).text == "text\n"
        assert child.started == 2
    finally:
        child.close()


def change_in_the_child(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Let each child run some code before it serves."""
    monkeypatch.setattr(processes, "_START", processes._START.replace("getattr(", f"exec({change!r})\ngetattr("))


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("import os; os.kill(os.getpid(), 11)", "ended the process that read it"),
        # The system sends it where the limit of the processor is reached.
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", "of the processor"),
        ("bytearray(2 << 30)", "MB of memory"),
        ("print('x' * 100); raise ValueError('no')", "cannot be parsed: ValueError: no"),
        ("raise RecursionError('deep')", "RecursionError"),
    ],
)
def test_whatever_happens_to_the_process_is_said(does: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    does_it = "\n".join(f"    {line}" for line in does.replace("; ", "\n").split("\n"))
    change = f"def parse(data):\n{does_it}\nfrom rag_harness.data.loaders import text\ntext.parse_text = parse\n"
    change_in_the_child(monkeypatch, change)
    child = Child()
    try:
        for _ in range(2):
            with pytest.raises(UnreadableError, match=why):
                unpacked(child.answer("txt", b"text"))
    finally:
        child.close()


def test_the_current_folder_is_not_searched_for_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("html", "json", "pypdf"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    child = Child()
    try:
        assert unpacked(child.answer("html", b"<p>text")).text == "text\n"
        assert unpacked(child.answer("pdf", book("text"))).text == "text"
    finally:
        child.close()


def test_the_process_knows_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("TMPDIR", "/tmp")
    says = "def parse(data):\n    import os\n    raise ValueError(sorted(os.environ))\n"
    change = f"{says}from rag_harness.data.loaders import text\ntext.parse_text = parse\n"
    change_in_the_child(monkeypatch, change)
    child = Child()
    try:
        with pytest.raises(UnreadableError) as told:
            unpacked(child.answer("txt", b"text"))
    finally:
        child.close()
    assert "TMPDIR" in str(told.value)
    assert "KEY" not in str(told.value)


def test_what_is_packed_is_unpacked() -> None:
    whole = Parsed("a\n\ud800b", "title\n", (0, 2), 3, (1,))
    assert unpacked(packed(whole)) == whole
    for fault, error in (
        (packed_fault("because"), UnreadableError),
        (Passing("because", "run").packed(), PassingError),
        (Passing("because", chance=False).packed(), UnreadableError),
    ):
        with pytest.raises(UnreadableError, match="because") as caught:
            unpacked(fault)
        assert caught.type is error


def test_links_and_names_that_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    (folder / "deep").mkdir(parents=True)
    write(tmp_path, outside_md=b"# Outside")
    write(folder, page_md=b"# A")
    (folder / "deep" / "inside.md").symlink_to(folder / "page.md")
    (folder / "leads_out.md").symlink_to(tmp_path / "outside.md")
    (folder / "nowhere.md").symlink_to(folder / "gone.md")
    (folder / "circle.md").symlink_to("circle.md")
    (folder / "two\nlines.md").write_text("x")
    (folder / "folder.md").mkdir()
    assert [file.name for file in page_files(folder)] == ["inside.md", "page.md"]
    refused = {file.name: why for file, why in files_below(folder) if why}
    assert set(refused) == {"leads_out.md", "nowhere.md", "circle.md", "two\nlines.md"}
    assert "leads out of the folder" in refused["leads_out.md"]
    assert "control characters" in refused["two\nlines.md"]


def test_what_is_no_document_is_not_read(tmp_path: Path) -> None:
    names = "README.md requirements.txt requirements-dev.txt robots.txt LICENSE.txt LICENSE.md .venv/a.txt b/.git/a.md"
    for name in [*names.split(), "a.md", "b/robots.md", "b.d/license.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    assert [file.relative_to(tmp_path).as_posix() for file in page_files(tmp_path)] == [
        "a.md",
        "b/robots.md",
        "b.d/license.txt",
    ]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "a.md").write_text("text")
    (tmp_path / "z.md").write_text("text")
    scandir = os.scandir

    def refuses(place: str) -> Iterator[os.DirEntry[str]]:
        if Path(place).name == "shut":
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuses)
    refused = "a folder that cannot be listed: Permission denied. Mend its rights"
    assert list(files_below(tmp_path)) == [(tmp_path / "shut", refused), (tmp_path / "z.md", "")]


def test_a_file_longer_than_any_document_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "sparse.txt").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(UnreadableError, match="longer than 64 MB"):
        load(tmp_path / "sparse.txt", "x")
    monkeypatch.setattr(reading, "MOST_FILE_BYTES", 10)
    (tmp_path / "ten.txt").write_bytes(b"0123456789")
    assert reading.read_bytes(tmp_path / "ten.txt") == b"0123456789"


# Bytes are decoded in their charset, and files without text are recognized.

GERMAN = "Ein Café, das für seine Größe gerühmt wird, hat über Mittag geöffnet. " * 20
RUSSIAN = "Это обычный русский текст о том, как вернуть товар продавцу. " * 20


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_german_in_any_charset(charset: str) -> None:
    assert decoded(GERMAN.encode(charset)).text == GERMAN


def test_the_likeliest_charset_is_taken_where_nothing_says_it() -> None:
    assert decoded(RUSSIAN.encode("cp1251")) == Decoded(RUSSIAN, "cp1251")


def test_a_late_letter_decides() -> None:
    assert decoded(b"plain words " * 20_000 + GERMAN.encode("cp1252")).text.endswith(GERMAN)


FRENCH = "# Menu\n\nUne crème brûlée coûte neuf euros.\n"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("crème brûlée", "cp1252"),
        (FRENCH, "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. ", "iso8859-2"),
        ("The price is 5 £ and we say naïve. ", "cp1252"),
        ("El niño comió una piña mañana. ", "cp1252"),
    ],
)
@pytest.mark.parametrize("times", [1, 3, 20])
def test_no_text_is_wrong_in_silence(text: str, charset: str, times: int) -> None:
    data = (text * times).encode(charset)
    with suppress(UnreadableError):
        assert decoded(data).text == text * times
    assert decoded(data, named=charset) == Decoded(text * times, charset)


def test_what_may_be_several_charsets_is_refused() -> None:
    with pytest.raises(UnreadableError, match=r"charset cannot be told: cp\d+ fits as well as .*--rag-charset=cp"):
        decoded(FRENCH.encode("latin-1"))


def test_a_charset_that_is_named_counts_where_the_file_says_nothing() -> None:
    assert decoded(FRENCH.encode(), named="cp1250") == Decoded(FRENCH)
    assert decoded(FRENCH.encode("cp1250", "replace"), "cp1250", "cp1252").guessed == ""
    with pytest.raises(UnreadableError, match="not shift_jis at byte"):
        decoded(FRENCH.encode("latin-1"), named="shift_jis")


@pytest.mark.parametrize("declared", ["utf-16", "rot13", "nonsense", "", "\0", "ascii"])
def test_a_declared_charset_that_cannot_be_is_not_believed(declared: str) -> None:
    assert decoded("naïve".encode(), declared).text in ("naïve", "naïve".encode().decode("cp1252"))


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfea", bytes(range(128, 256)) * 400 + b"\0"])
def test_what_is_in_no_charset_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="Save it as UTF-8"):
        decoded(data)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a\0b", "NUL"),
        ("\x01\x02 word " * 100, "control characters"),
        (GERMAN.encode().decode("cp1252"), "wrong charset"),
        ("\ufffd word " * 100, "wrong charset"),
        ("ABCdef0123+/" * 500, "data, no words"),
        ("@#$ %^& *() " * 100, "neither letters nor digits"),
        ("This page is left blank.\n" * 100, "lines that are the same"),
    ],
)
def test_garbage_is_named(text: str, what: str) -> None:
    assert what in garbage(text)
    with pytest.raises(UnreadableError, match="Remove it"):
        checked_text(text)


@pytest.mark.parametrize(
    "text",
    [
        GERMAN,
        RUSSIAN,
        "これは日本語の文章です。とても長い文章で、空白がありません。" * 50,
        "| 12 | 13.5 | 14 |\n" + "".join(f"| {n} | {n * 3} | x |\n" for n in range(100)),
        "def f(x):\n    return {x: [y for y in range(x)]}\n\n" * 5 + "print(f(3))  # prints it\n" * 20,
        "short: §$%&/()",
        "हिन्दी में लिखा हुआ एक साधारण पाठ। " * 20,
        "กี่ ที่ นี้ มี้ " * 40,
        "e\u0301\u0323 " * 150,
        "",
    ],
)
def test_text_of_all_kinds_is_no_garbage(text: str) -> None:
    assert garbage(text) == ""


@pytest.mark.parametrize("read", [parse_text, parse_page])
def test_a_pdf_with_the_name_of_a_text_is_named(read: Callable[[bytes], Parsed]) -> None:
    with pytest.raises(UnreadableError, match="but a PDF"):
        read(b"%PDF-1.4\n\xff\xfe binary")
