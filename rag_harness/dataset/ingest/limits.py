"""What one file may take of the process that reads it."""

from __future__ import annotations

MEMORY_BYTES = 1 << 30
"""Address space: a stream of 10 kB may unpack to gigabytes."""
PROCESSOR_SECONDS = 14
"""The standard library's HTML parser takes a minute for 120 kB of ``<a x="``."""
WALL_SECONDS = 18.0
OUTPUT_BYTES = 64 << 20
PAGES = 5_000
OPEN_FILES = 64


def limit_process() -> None:
    """Give this process its limits, as far as the system knows them: Windows knows none, macOS not that of memory."""
    try:
        import resource
    except ImportError:
        return
    wanted = [("RLIMIT_AS", MEMORY_BYTES), ("RLIMIT_FSIZE", 0), ("RLIMIT_NOFILE", OPEN_FILES), ("RLIMIT_CORE", 0)]
    for name, most in wanted:
        _set(getattr(resource, name), most, most)


def limit_next_file() -> None:
    """Let this process work for ``PROCESSOR_SECONDS`` more, from now."""
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
