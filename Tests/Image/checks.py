# SPDX-License-Identifier: Apache-2.0
"""Counts and prints checks."""

_failures = 0


def check(what, holds):
    global _failures
    _failures += not holds
    print(f"  {'ok' if holds else 'FAILED'}  {what}", flush=True)


def exit_code():
    """1 if a check failed."""
    return 1 if _failures else 0
