"""What is installed: this package, Python, what the package needs, its extras. Nothing of it is imported."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING

from rag_harness.registry.installed import NAME, VERSION, install, strangers, version

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_ABSENT = "not installed"


def package_lines() -> list[str]:
    """Return a line each for this package, Python, the platform and every package that is always needed."""
    found = version()
    other = "" if found == VERSION else f", but its code is of {VERSION}: {install()} --force-reinstall"
    return [
        f"{NAME} {found}{other}",
        f"Python {platform.python_version()} ({platform.python_implementation()})",
        f"platform {platform.platform()}",
        *(f"{name} {_version_of(name)}" for name in sorted(_needed(""), key=str.lower)),
        *strangers(),
    ]


def extra_lines() -> list[str]:
    """Return a line for each extra: the versions of its packages, or what is missing."""
    from importlib.metadata import metadata

    try:
        extras = metadata(NAME).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return [f"unknown: {NAME} runs without being installed. To do: {install()}"]
    return [f"{extra}: {_extra(extra)}" for extra in sorted(extras)]


def _extra(extra: str) -> str:
    versions = {name: _version_of(name) for name in sorted(_needed(extra), key=str.lower)}
    missing = [name for name, found in versions.items() if found == _ABSENT]
    if not versions:
        return "nothing on this Python and platform"
    if len(missing) == len(versions):
        return f"{_ABSENT}. {install(extra)}"
    there = [f"{name} {found}" for name, found in versions.items() if found != _ABSENT]
    lacking = f"; lacks {', '.join(missing)}. {install(extra)}" if missing else ""
    return f"{', '.join(there)}{lacking}"


def _needed(extra: str) -> list[str]:
    """Return the packages that this platform needs for ``extra``; for "", those that are always needed."""
    from packaging.requirements import Requirement  # pytest needs it, and brings it

    try:
        found = [Requirement(line) for line in requires(NAME) or []]
    except PackageNotFoundError:
        return []
    return [each.name for each in found if each.name != NAME and _is_asked(each, extra)]


def _is_asked(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    always = marker is None or marker.evaluate({"extra": ""})
    return always if not extra else not always and marker is not None and marker.evaluate({"extra": extra})


def _version_of(name: str) -> str:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return _ABSENT
