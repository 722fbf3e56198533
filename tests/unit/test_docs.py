"""The pages hold to what they say: links, commands, prose, references and words."""

from __future__ import annotations

import ast
import io
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import rag_harness
from docs.made import DOCS as MADE_DOCS
from docs.made import IMAGES, PICTURES
from docs.made import PAGES as MADE_PAGES
from docs.made.errors import _raised
from docs.made.messages import Messages
from rag_harness.__main__ import ALONE, COMMANDS
from rag_harness.core.settings import options
from rag_harness.core.settings.table import Settings
from rag_harness.evaluation.measures import known_measures
from rag_harness.records.expectations import known_kinds
from rag_harness.retrieval.indexes.server_connection import ClusterOptions, GraphOptions, cluster_options
from tests.effort import without_garbage_collection
from tests.unit.pages import DOCS, ROOT, found, place, read, refusal

# Links of the pages: each leads to a file that is there, and every page is reached from the map of all pages.

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"\]\(([^()\s]{1,300})\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MOST_WORDS = 900
"""A person who has thirty seconds reads no more."""


def links(page: Path) -> list[tuple[str, str]]:
    """Return the places and the targets of a page's links that lead to files, without what stands behind ``#``."""
    targets = [(where, each.partition("#")[0]) for where, each in found(_LINK, page, but=_FENCE) if "://" not in each]
    return [(where, each) for where, each in targets if each and not each.startswith("mailto:")]


def test_each_link_leads_to_a_file() -> None:
    lost = [f"{where}: {each}" for page in PAGES for where, each in links(page) if not (page.parent / each).exists()]
    assert not lost, "\n".join(lost)


def test_every_page_is_reached_from_the_map() -> None:
    maps = (DOCS / "index.md", DOCS / "dev" / "README.md")
    reached = {(page.parent / each).resolve() for page in maps for _, each in links(page)}
    assert sorted(page.name for page in DOCS.rglob("*.md") if page.resolve() not in reached) == ["index.md"]


def test_the_readme_is_read_in_a_sitting() -> None:
    assert len(read(ROOT / "README.md").split()) <= MOST_WORDS


# Each command of ``rag-harness`` that a page shows can be typed: its parser takes it.

MADE = {"commands.md", "errors.md"}
_COMMAND = re.compile(r"^ {4,6}(rag-harness .*?)(?: {2,}.*| +#.*)?$", re.MULTILINE)


def shown() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each command in the indented blocks of pages that are written by hand."""
    for page in sorted(DOCS.rglob("*.md")):
        for where, line in found(_COMMAND, page, but=_FENCE) if page.name not in MADE else ():
            parts = (part.strip() for part in line.split("&&"))
            yield from ((where, part) for part in parts if part.startswith("rag-harness "))


def test_a_command_of_a_page_can_be_typed() -> None:
    commands = [*shown()]
    faults = [f"{where}: {command}: {why}" for where, command in commands if (why := refusal(shlex.split(command)[1:]))]
    assert not faults, "\n".join(faults)
    assert len(commands) > 100


# The pages are read once: short sentences, and none of the phrases of ``docs/style.toml``.

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STYLE: dict[str, Any] = tomllib.loads(read(DOCS / "style.toml"))
PROSE_MADE = {"api.md", "commands.md", "errors.md", "options.md", "output.md"}
PROSE_PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if page.name not in PROSE_MADE]
_NO_PROSE = re.compile(r"^```.*?^```|<!--.*?-->|^(?: {4}|\t).*?$|^[|: -]{3,}$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]{1,300}`")
_PROSE_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^()\s]{0,300}\)")
_BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d{1,3}\.) |\n#{1,6} |\n>|\|")
_END = re.compile(r"(?<=[.!?])[)*_\"]{0,3}\s+(?=[\"*_(\[A-Z`0-9])")


@cache
def sentences(page: Path) -> list[tuple[str, str]]:
    """Return the sentences of a page's prose, of its lists and of the cells of its tables, each with its place.

    A piece of code is a word.
    """
    text = _NO_PROSE.sub(lambda match: "|" + "\n" * match[0].count("\n"), read(page))
    text = _PROSE_LINK.sub(r"\1", _CODE.sub("CODE", text))
    found = []
    # A heading in the first line is one, too.
    for begin, block in _parts(_BLOCK, f"\n{text}"):
        for at, said in _parts(_END, block):
            first = begin + at + len(said) - len(said.lstrip()) - 1
            found.append((place(page, text, first), " ".join(said.split())))
    return [(where, said) for where, said in found if said]


def _parts(between: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield what stands between matches, and where it begins."""
    last = 0
    for match in between.finditer(text):
        yield last, text[last : match.start()]
        last = match.end()
    yield last, text[last:]


def is_long(sentence: str) -> bool:
    """Whether a sentence has more words than the style allows."""
    return len(re.findall(r"[A-Za-z][\w'’-]*", sentence)) > int(STYLE["words"])


def test_sentences_are_split_where_they_end() -> None:
    said = [each for _, each in sentences(DOCS / "index.md")]
    assert "Measures, judges." not in said
    assert is_long("word " * 29)
    assert not is_long("word " * 28)


def test_few_sentences_are_long() -> None:
    said = [each for page in PROSE_PAGES for each in sentences(page)]
    long = [f"{where}: {each}" for where, each in said if is_long(each)]
    assert len(long) <= STYLE["long_share"] * len(said), "\n".join(long)


def test_no_phrase_of_a_page_has_to_be_read_twice() -> None:
    faults = [
        f"{at}: {said}: {why}" for page in PROSE_PAGES for at, said in sentences(page) for _, why in phrases(said)
    ]
    assert not faults, "\n".join(faults)


def test_no_phrase_of_the_code_has_to_be_read_twice() -> None:
    """Docstrings, messages and help texts: each text that is in a module."""
    found = {(file, phrase.lower()): why for file, said in texts() for phrase, why in phrases(said)}
    allowed = {(file, phrase) for file, each in STYLE["exceptions"].items() for phrase in each}
    assert not {key: why for key, why in found.items() if key not in allowed}
    assert not allowed - found.keys(), "these are mended: take them out of [exceptions]"


def test_no_phrase_of_a_subject_has_to_be_read_twice() -> None:
    """Commits that are not on main yet can still be reworded; a clone without main has none to look at."""
    command = ["git", "log", "--no-merges", "--format=%s", "main..HEAD"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8")
    faults = [f"{said}: {why}" for said in found.stdout.splitlines() for _, why in phrases(said)]
    assert not faults, "\n".join(faults)


def test_texts_are_read_whole() -> None:
    assert [*_texts(ast.parse('"""One."""\nx = f"two {x} " "three"\n'))] == ["One.", "two X three"]


_ANY_PHRASE = re.compile("|".join(f"(?:{phrase})" for phrase in STYLE["phrases"]), re.IGNORECASE)


def phrases(said: str) -> Iterator[tuple[str, str]]:
    """Yield the phrases of a text that the style does not allow, each with what to write instead."""
    if _ANY_PHRASE.search(said):
        for phrase, why in STYLE["phrases"].items():
            yield from ((match[0], why) for match in re.finditer(phrase, said, re.IGNORECASE))


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of the package, each with the file that it is in. A value in a text is an X."""
    package = ROOT / "rag_harness"
    for file in sorted(package.rglob("*.py")):
        for said in _texts(ast.parse(read(file))):
            yield file.relative_to(package).as_posix(), " ".join(said.split())


def _texts(tree: ast.AST) -> Iterator[str]:
    pieces = set()
    for node in ast.walk(tree):  # an f-string comes before its pieces
        if isinstance(node, ast.JoinedStr):
            pieces |= {id(each) for each in node.values}
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield node.value


# Pages that code and settings speak of are there: whoever moves a page mends what names it.

FOLDERS = (".ci", ".github", "benchmarks", "comment", "docs/made", "examples", "rag_harness", "templates", "tests")
FOLDERS_OF_SUITES = ("test_experiments", "test_retrieval_golden")
KINDS = {"", ".ini", ".j2", ".js", ".py", ".sh", ".sql", ".toml", ".yaml", ".yml"}
_PAGE = re.compile(r"(?<![\w/-])(?:\.{1,2}/)*(docs/[\w./-]*\w\.md)\b")
"""A page by its path from the root. That of another project has an address, or its project before it."""
_BEGINS = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
"""What stands before a string that is a statement of its own: a docstring, or what is said of a constant."""


def files() -> Iterator[Path]:
    below = (file for folder in (*FOLDERS, *FOLDERS_OF_SUITES) for file in (ROOT / folder).rglob("*"))
    for file in (*ROOT.iterdir(), *below):
        # What tools leave in folders of their own, such as .venv, is not ours.
        is_left = any(part.startswith(".") for part in file.relative_to(ROOT).parts[1:-1])
        if file.suffix in KINDS and file.is_file() and not is_left:
            yield file


def said(file: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield what a file says, each part with its first line: of a test its comments and docstrings, for it has inputs.

    An input may name any page of any folder.
    """
    if ROOT / "tests" not in file.parents:
        yield 1, text
        return
    if file.suffix != ".py":
        return
    before, depth = tokenize.ENCODING, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_alone = token.type == tokenize.STRING and before in _BEGINS and depth == 0
        if token.type == tokenize.COMMENT or is_alone:
            yield token.start[0], token.string
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        before = token.type


def named(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the path of each page that a file names."""
    text = file.read_text(encoding="utf-8", errors="ignore")
    for first, part in said(file, text) if "docs/" in text else ():
        for match in _PAGE.finditer(part):
            yield f"{file.relative_to(ROOT).as_posix()}:{first + part.count(chr(10), 0, match.start())}", match[1]


def test_pages_that_are_named_are_there() -> None:
    found = [each for file in files() for each in named(file)]
    faults = [f"{where}: {page}{_moved(page)}" for where, page in found if not (ROOT / page).is_file()]
    assert not faults, "\n".join(faults)
    assert len(found) > 50


def _moved(page: str) -> str:
    """Say where a page of this name lies."""
    here = [each.relative_to(ROOT).as_posix() for each in DOCS.rglob(Path(page).name)]
    return f" is {' or '.join(here)} now" if here else " is not a page"


def test_of_a_test_comments_and_docstrings_are_looked_at_and_its_inputs_are_not() -> None:
    text = (
        '"""See docs/a.md,\nor docs/b.md."""\nX = "docs/in.md"\n"""docs/c.md"""\n\n\ndef f():\n    # docs/d.md\n'
        '    g(\n        "docs/in.md", "http://x/docs/in.md"\n    )  # x/docs/of-x.md, ../docs/e.md\n'
    )
    found = [
        (line + part.count("\n", 0, match.start()), match[1])
        for line, part in said(ROOT / "tests" / "x.py", text)
        for match in _PAGE.finditer(part)
    ]
    assert found == [(1, "docs/a.md"), (2, "docs/b.md"), (4, "docs/c.md"), (8, "docs/d.md"), (11, "docs/e.md")]


# The reference is whole, and is that of the code.


def text(page: str) -> str:
    return (MADE_DOCS / page).read_text(encoding="utf-8")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="help and signatures read otherwise on other Pythons")
@pytest.mark.parametrize("name", MADE_PAGES)
def test_a_page_is_that_of_the_code(name: str) -> None:
    with without_garbage_collection():
        made = MADE_PAGES[name]()
    assert text(name) == made, "write it anew: python -m docs.made"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_that_of_the_code(name: str) -> None:
    assert (IMAGES / name).read_text(encoding="utf-8") == PICTURES[name](), "draw it anew: python -m docs.made"


def test_every_option_is_there() -> None:
    flags = re.findall(r"^### (--rag-[a-z0-9-]+)$", text("reference/options.md"), re.MULTILINE)
    assert sorted(flags) == sorted(f"--rag-{each.name.replace('_', '-')}" for each in options())


def test_every_command_is_there() -> None:
    named = set(
        re.findall(r"^usage: rag-harness ([a-z-]+(?: [a-z-]+)?) \[", text("reference/commands.md"), re.MULTILINE)
    )
    assert named >= set(ALONE) | {f"{group} {name}" for group, (_, names) in COMMANDS.items() for name in names}


def test_every_public_name_has_words() -> None:
    sections = re.split(r"^## ", text("reference/api.md"), flags=re.MULTILINE)[1:]
    said = {
        each.partition("\n")[0]: re.sub(r"```.*?```", "", each.partition("\n")[2], flags=re.DOTALL) for each in sections
    }
    assert set(said) == {name for name in rag_harness.__all__ if not name.startswith("__")}
    assert [name for name, words in said.items() if len(words.split()) < 4] == []


def test_every_field_of_a_file_has_words() -> None:
    assert re.findall(r"^\| `\w+` \| .* \|  \|$", text("reference/output.md"), re.MULTILINE) == []


def test_every_measure_and_every_kind_of_expectation_is_named() -> None:
    measures, kinds = text("reference/measures.md"), text("reference/expectations.md")
    assert [name for name in known_measures() if f"`{name}" not in measures] == []
    assert [kind for kind in known_kinds() if f"`{kind}`" not in kinds] == []


# The pages about clusters, report and terminal: their commands can be typed, their files read, tables are whole.

HOW_TO = ["scale", "start-ray", "ray-on-kubernetes", "ray-on-slurm", "qdrant", "qdrant-on-kubernetes"]
HOW_TO += ["report", "read-a-report", "report-on-a-pull-request", "terminal"]
FILES = {name: DOCS / "how-to" / f"{name}.md" for name in HOW_TO}
SCALE_PAGES = {name: read(file) for name, file in FILES.items()}
REFERENCE = read(DOCS / "reference" / "qdrant.md")
_FLAG = re.compile(r"--rag-[\w-]+")
_SCALE_PAGES_COMMAND = re.compile(r"^ {4}(?:until )?(rag-harness .*?)(?:;.*)?$", re.MULTILINE)


def test_a_page_is_short_and_its_options_are_there() -> None:
    assert {name: words for name, text in SCALE_PAGES.items() if (words := len(text.split())) > 600} == {}
    options = set(_FLAG.findall(read(DOCS / "reference" / "options.md")))
    faults = [
        f"{where}: {flag}" for file in FILES.values() for where, flag in found(_FLAG, file) if flag not in options
    ]
    assert not faults, "\n".join(faults)


def test_a_command_can_be_typed() -> None:
    """Also one behind ``until``, which stands on no other page."""
    commands = [each for file in FILES.values() for each in found(_SCALE_PAGES_COMMAND, file)]
    faults = [f"{where}: {command}: {why}" for where, command in commands if (why := refusal(shlex.split(command)[1:]))]
    assert not faults, "\n".join(faults)
    assert len(commands) >= 10


def test_files_are_yaml() -> None:
    cluster, chart, workflow = (
        yaml.safe_load(re.findall(r"```yaml\n(.*?)```", SCALE_PAGES[name], re.DOTALL)[0])
        for name in ("ray-on-kubernetes", "qdrant-on-kubernetes", "report-on-a-pull-request")
    )
    assert cluster["kind"] == "RayCluster"
    assert chart["replicaCount"] == 3
    named = shlex.split(workflow[2]["run"])
    assert refusal(named[1 : named.index("&&")]) == ""


def test_the_cluster_that_is_shown_can_be_read() -> None:
    (shown,) = re.findall(r'qdrant_cluster = \["(.*?)"\]', SCALE_PAGES["qdrant"])
    made = cluster_options(Settings(qdrant_cluster=tuple(shown.split())))
    assert (made.shards, made.replicas, made.write_consistency) == (6, 2, 2)


def test_tables_of_qdrant_have_every_option() -> None:
    cells = re.findall(r"^\| (`.*?) \|", REFERENCE, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert set(named) >= {each.name for made in (ClusterOptions, GraphOptions) for each in fields(made)}


# Terminal, page, comment and files say one thing in one word; no riddle is printed.

WORDS = (
    *("correct", "wrong", "not checked", "retrieved", "not retrieved", "supported", "unsupported", "declined"),
    *("reused", "recorded", "replayed", "asked", "passed", "failed", "undecided", "not judged"),
    *("cause", "category", "label"),
)
INSTEAD = {
    "inconclusive": "undecided",
    "taken over": "reused",
    "no candidate": "not among the candidates",
    "in between": "the category's name, in its table",
    "kind of answer": "category",
    "kinds of answers": "categories of answers",
    "would be: ": "what happens if",
    "not right": "wrong, or not correct",
}
"""What is not printed, and what is said instead."""
REMOVED = "core/settings/removed.py"
"""Says what options are called that had another name."""
_FORBIDDEN = re.compile("|".join(rf"(?<![\w-]){re.escape(each)}" for each in INSTEAD), re.IGNORECASE)
CODE = sorted((ROOT / "rag_harness").rglob("*.py"))
SHOWN = [*sorted((ROOT / "rag_harness" / "page" / "assets").glob("*.j2")), ROOT / "rag_harness/page/assets/page.js"]


def printed(code: str) -> Iterator[str]:
    """Yield the texts of code that are no docstrings: what may be printed."""
    tree = ast.parse(code)
    alone = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def riddles(texts: Iterator[str]) -> list[str]:
    return [f"{match[0]!r} in {text[:100]!r}" for text in texts for match in _FORBIDDEN.finditer(text)]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('say("3 gates inconclusive")', 1),
        ('say(f"{n} rows were taken over from {x}")', 1),
        ('"""An inconclusive gate."""\nsay("undecided")', 0),
        ('state = "Inconclusive"', 1),
        ('one = "No gate looks at it; one would be a recall"', 0),
    ],
)
def test_the_words_are_looked_for_in_what_is_printed(code: str, found: int) -> None:
    assert len(riddles(printed(code))) == found


def test_no_text_of_the_package_has_another_word_or_a_riddle() -> None:
    found = {str(file): said for file in CODE if not file.match(REMOVED) and (said := riddles(printed(read(file))))}
    found |= {str(file): said for file in SHOWN if (said := riddles(iter([read(file)])))}
    assert found == {}


def test_the_glossary_has_each_word_of_the_vocabulary() -> None:
    listed = _first_cells(DOCS / "reference" / "glossary.md")
    assert set(WORDS) - listed == set()


def _first_cells(page: Path) -> set[str]:
    rows = [line.split("|")[1] for line in read(page).splitlines() if line.startswith("| ")]
    return {word.strip() for cell in rows for word in cell.split(",")}


# The page of errors has messages that are raised through a name, a function, or a list of problems.

HINT = 'HINT = "Name another place."\n'
TELL = 'def told(file) -> str:\n    """It says."""\n    return f"{file} is a folder, and no file. {HINT}"\n'


def messages(code: str, others: str = "") -> list[str]:
    trees = {"a.py": ast.parse(code), "b.py": ast.parse(others)}
    return [said for _, said in _raised(trees["a.py"], "a.py", Messages(trees))]


@pytest.mark.parametrize(
    ("code", "others", "said"),
    [
        (f'{HINT}raise DataError(f"{{x}}: {{HINT}}")', "", ["…: Name another place."]),
        (f"{HINT}{TELL}raise DataError(told(x))", "", ["… is a folder, and no file. Name another place."]),
        ("raise DataError(told(x))", f"{HINT}{TELL}", ["… is a folder, and no file. Name another place."]),
        ('raise DataError("It is here" if x else "It is there")', "", ["It is here", "It is there"]),
        (
            'raise DataError(f"{x} says all that is needed by itself: {told(x)}")',
            TELL,
            ["… says all that is needed by itself: …"],
        ),
        ("raise DataError(a_b(x))", "", ["…"]),
    ],
)
def test_a_message_is_read_from_what_makes_it(code: str, others: str, said: list[str]) -> None:
    assert messages(code, others) == said


def test_problems_that_are_listed_are_found_where_they_are_made() -> None:
    code = (
        'def wrong(x) -> list[str]:\n    """Say it."""\n    return [f"{x} is there twice. Rename it.", "key"]\n'
        'def read(x):\n    """Read. All."""\n    problems = wrong(x)\n    raise DataError("\\n".join(problems))\n'
    )
    assert messages(code) == ["…", "… is there twice. Rename it."]


def test_an_error_that_a_function_makes_says_what_each_call_hands_it() -> None:
    code = (
        'SIGNS = (">=", "<")\n'
        "def wrong(text: str, problem: str) -> SettingsError:\n"
        '    return SettingsError(f"{text.strip()}: {problem}.")\n'
        "raise wrong(x, f\"{y!r} is not a comparison; use one of {' '.join(SIGNS)}\")\n"
    )
    assert messages(code) == ["…: ….", "…: … is not a comparison; use one of >= <."]


@pytest.mark.parametrize(
    "said",
    [
        "… … is not a page of ….…",
        r"… is not a comparison; use one of \>= \<= \> \<.",
        "it must return a PipelineOutput or the answer as a string.",
    ],
)
def test_the_page_has_what_a_reader_searched_for(said: str) -> None:
    assert said in (MADE_DOCS / "dev" / "errors.md").read_text(encoding="utf-8")
