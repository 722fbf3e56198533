"""Limits of memory and time for the process that reads a file."""

from __future__ import annotations

MEMORY_BYTES = 1 << 30
"""Address space. A stream of 10 kB may unpack to gigabytes."""
PROCESSOR_SECONDS = 14
"""The standard library's HTML parser takes a minute for 120 kB of ``<a x="``."""
WALL_SECONDS = 18.0
OUTPUT_BYTES = 64 << 20
PAGES = 5_000
CELLS = 200_000
"""Most cells of a workbook or a CSV file. More make over 10,000 chunks, and those are the most of a document."""
UNPACKED_BYTES = 256 << 20
"""Most bytes that a docx, pptx or xlsx file may say that it unpacks to."""
OPEN_FILES = 64


def limit_process() -> None:
    """Limit this process, as far as the system can. Windows has no limits; macOS has none for memory."""
    try:
        import resource
    except ImportError:
        return
    wanted = [("RLIMIT_AS", MEMORY_BYTES), ("RLIMIT_FSIZE", 0), ("RLIMIT_NOFILE", OPEN_FILES), ("RLIMIT_CORE", 0)]
    for name, most in wanted:
        _set(getattr(resource, name), most, most)


def limit_next_file() -> None:
    """Give this process another ``PROCESSOR_SECONDS``, from now on."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + PROCESSOR_SECONDS, resource.RLIM_INFINITY)


def _set(name: int, soft: int, hard: int) -> None:
    from contextlib import suppress
    from resource import setrlimit

    with suppress(ValueError, OSError):
        setrlimit(name, (soft, hard))
