"""Warnings are errors in our own suite, but for those that say nothing about the code."""

from __future__ import annotations

from syrupy.utils import warn_incomplete_worker_reports


def test_ctrl_c_under_workers_ends_with_the_summary_and_no_warning_of_syrupy() -> None:
    """The filters of pytest.ini hold in here. syrupy warns while pytest ends, which an error would cut short."""
    warn_incomplete_worker_reports(received=0, expected=2)
