"""A file as Python runs it: what counts, what does not, and what it imports."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.registry.identity.python_source import Import, read_source, source_as_json, source_of_json

PLAIN = b"x = 1\n\n\ndef f(a):\n    return [a, 'b']\n"


@pytest.mark.parametrize(
    "same",
    [
        "# why\nx = 1\n\n\ndef f(a):\n    # because\n    return [a, 'b']  # so\n",
        "x = 1\r\n\r\n\r\ndef f(a):\r\n    return [a, 'b']\r\n",
        'x = (1)\ndef f(\n    a,\n):\n        return [\n            a, "b",\n        ]\n',
        "\ufeffx = 1\n\n\ndef f(a):\n    return [a, 'b']\n",
    ],
)
def test_comments_and_layout_do_not_count(same: str) -> None:
    assert read_source(same.encode()).digest == read_source(PLAIN).digest


@pytest.mark.parametrize(
    "other",
    [
        "x = 2\n\n\ndef f(a):\n    return [a, 'b']\n",
        "x = 1.0\n\n\ndef f(a):\n    return [a, 'b']\n",
        "x = 1\n\n\ndef f(a):\n    return [a, 'c']\n",
        "x = 1\n\n\ndef f(a):\n    return (a, 'b')\n",
        "x = 1\n\n\ndef f(a):\n    return a, 'b'\n",
        "x = 1\n\n\ndef f(a, *, b=1):\n    return [a, 'b']\n",
        "x = 1\n\n\nasync def f(a):\n    return [a, 'b']\n",
        "x = 1\n\n\ndef f(a):\n    return [a, b'b']\n",
        "def f(a):\n    return [a, 'b']\n\n\nx = 1\n",
        "x = True\n\n\ndef f(a):\n    return [a, 'b']\n",
        # A program may read it: to some it is the prompt.
        "x = 1\n\n\ndef f(a):\n    'doc'\n    return [a, 'b']\n",
    ],
)
def test_what_is_run_counts(other: str) -> None:
    assert read_source(other.encode()).digest != read_source(PLAIN).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = -0.0", "x = 0.0"),
        ("x = 1e3", "x = 1001.0"),
        ("x = ''", "x = None"),
        ("f()", "f(None)"),
        ("x = {**a}", "x = {None: a}"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = f'{a:>{w}}'", "x = f'{a:<{w}}'"),
        ("x = f'a{b}'", "x = f'b{b}'"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("x: int", "x: int = 0"),
        ("for x in y: pass", "for x in y: pass\nelse: z()"),
        ("global x", "nonlocal x"),
        ("from . import a", "from .. import a"),
        ("import a as b", "import a"),
        ("x = 'a' 'b'", "x = 'ba'"),
        ("raise A", "raise A from B"),
        ("a[1:2]", "a[1:]"),
        ("a[:2]", "a[2:]"),
        ("lambda: 0", "lambda: 1"),
        ("match x:\n case 1: pass", "match x:\n case 1 if y: pass"),
    ],
)
def test_small_differences_count(one: str, other: str) -> None:
    assert read_source(one.encode()).digest != read_source(other.encode()).digest


@pytest.mark.parametrize(
    ("plain", "owing"),
    [
        ("e = Experiment('a', p)", "e = Experiment('a', p, expect=[{'max_words': 3}])"),
        ("e = rag.Experiment('a', p, data='d')", "e = rag.Experiment('a', p, expect=OWED, data='d')"),
        ("def test_a(r): pass", "@pytest.mark.rag_expect({'max_words': 3})\ndef test_a(r): pass"),
        ("@pytest.mark.e3\ndef t(r): pass", "@pytest.mark.e3\n@mark.rag_expect({}, {})\ndef t(r): pass"),
        ("import pytest", "import pytest\npytestmark = pytest.mark.rag_expect({'links': True})"),
        ("pytestmark = [mark.e3]", "pytestmark = [mark.e3, mark.rag_expect({'links': True})]"),
    ],
)
def test_what_answers_owe_does_not_count(plain: str, owing: str) -> None:
    assert read_source(plain.encode()).digest == read_source(owing.encode()).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("e = Pipeline(expect=1)", "e = Pipeline(expect=2)"),
        ("e = Experiment('a', p)", "e = Experiment('a', p, expected=1)"),
        ("rag_expect = 1", "rag_expect = 2"),
        ("x = Experiment(a, f(expect=1), expect=3)", "x = Experiment(a, f(expect=2), expect=3)"),
    ],
)
def test_what_is_called_alike_counts(one: str, other: str) -> None:
    assert read_source(one.encode()).digest != read_source(other.encode()).digest


def test_an_empty_format_of_an_f_string_is_none() -> None:
    """Python 3.12 ends a nested format with an empty text, which others do not have."""
    tree = ast.parse("f'{a:<{w}}'")
    formatted = tree.body[0].value.values[0]  # type: ignore[attr-defined]
    before = read_source(b"f'{a:<{w}}'").digest
    formatted.format_spec.values.append(ast.Constant(""))
    from rag_harness.registry.identity.python_source import _plain

    assert _plain(tree) == _plain(ast.parse("f'{a:<{w}}'"))
    assert before == read_source(b"f'{a:<{w}}'  # w").digest


@pytest.mark.parametrize("broken", [b"def (", b"\xff\xfe", b"x = '\x00'", b"(" * 5000, b"print 'x'"])
def test_what_is_no_python_counts_by_its_bytes(broken: bytes) -> None:
    found = read_source(broken)
    assert found.imports == ()
    assert found.digest == read_source(broken).digest != read_source(broken + b"#").digest


@given(st.text(alphabet="ab=()[]'\"#\n :,1.+\\", max_size=60))
def test_whatever_is_there_is_read_and_a_comment_behind_it_changes_nothing_that_parses(text: str) -> None:
    content = text.encode()
    try:
        ast.parse(content)
    except (SyntaxError, ValueError):
        read_source(content)
        return
    assert read_source(content + b"\n# a comment\n").digest == read_source(content).digest


def test_imports_in_every_spelling() -> None:
    said = dedent(
        """
        import a, b.c as d
        from e import f as g, h
        from . import i
        from ..j import k
        from l import *
        def later():
            from m import n
            if x: import o
        try:
            import p
        except ImportError:
            from q import (
                r,  # why
            )
        import_module("s.t"); importlib.import_module(".u", __package__); __import__("v")
        import_module(name); import_module("no module"); open("w")
        """
    )
    found = {(each.level, each.module, *each.names) for each in read_source(said.encode()).imports}
    assert found == {
        (0, "a"), (0, "b.c"), (0, "e", ("f", "g"), ("h", "h")), (1, "", ("i", "i")), (2, "j", ("k", "k")),
        (0, "l", ("*", "*")), (0, "m", ("n", "n")), (0, "o"), (0, "p"), (0, "q", ("r", "r")), (0, "s.t"), (1, "u"),
        (0, "v"),
    }  # fmt: skip


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"])
def test_what_only_type_checkers_import_is_imported_by_nobody(test: str) -> None:
    said = f"if {test}:\n    import a\n    from b import c\nelse:\n    import d\nimport e\n"
    assert {each.module for each in read_source(said.encode()).imports} == {"d", "e"}


def test_what_is_imported_on_first_use_is_imported() -> None:
    """PEP 562: the imports for type checkers say what the names are."""
    said = "if TYPE_CHECKING:\n    from b import c\n\ndef __getattr__(name):\n    return name\n"
    assert read_source(said.encode()).imports == (Import("b", (("c", "c"),)),)


def test_what_is_read_off_a_module_is_imported_from_it() -> None:
    found = read_source(b"import a, b.c as d, e\nuse(a.x, a.y.z, d.w)\n").imports
    assert found == (
        Import("a"), Import("a", (("x", "x"), ("y", "y"))), Import("b.c"), Import("b.c", (("w", "w"),)), Import("e"),
    )  # fmt: skip


def test_a_condition_that_is_none_for_type_checkers_is_followed() -> None:
    said = b"if not TYPE_CHECKING:\n    import a\nif x.y:\n    import b\n"
    assert {each.module for each in read_source(said).imports} == {"a", "b"}


def test_a_source_is_the_same_after_json() -> None:
    import json

    found = read_source(b"from ..a import b as c\nimport d\n")
    assert source_of_json(json.loads(json.dumps(source_as_json(found)))) == found
    assert found.imports == (Import("d"), Import("a", (("b", "c"),), 2)) or len(found.imports) == 2


@pytest.mark.parametrize("said", [None, [], ["a"], ["a", [["b"]]], ["a", 5], {"a": 1}])
def test_what_nobody_of_us_wrote_is_refused(said: object) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        source_of_json(said)
