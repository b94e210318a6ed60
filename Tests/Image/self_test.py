#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that reports the self-test, on directories of this machine, with scripted commands.

usage: self_test.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

PROGRAM = pathlib.Path(__file__).parents[2] / "packaging/image/root/usr/libexec/approval-token/report-self-test"


def report(result, text):
    """The exit code of the program, the calls of its commands, and the log on the SD card."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name in ("boot/firmware", "commands"):
            (root / name).mkdir(parents=True)
        for command, end in (("mount", ""), ("runuser", f"printf '{text}'\nexit {result}\n")):
            (root / "commands" / command).write_text(f'#!/bin/sh\necho {command} "$@" >>{root}/calls\n{end}')
            (root / "commands" / command).chmod(0o755)
        environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
        status = subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL).returncode
        log = root / "boot/firmware/approval-token.log"
        return status, (root / "calls").read_text(), log.read_text() if log.exists() else ""


if __name__ == "__main__":
    print("the self-test")
    status, calls, log = report(0, "good  vault\\ngood  panel\\n")
    check("it is asked of the service, as its user", "--user=approval-token -- approval-token self-test --within" in calls)
    check("one that passes writes nothing to the SD card", status == 0 and "mount" not in calls and not log)
    status, calls, log = report(1, "good  vault\\nBAD   panel: no chip\\n")
    check("one that fails is in the log", status == 1 and log.rstrip().endswith("  self-test failed: BAD   panel: no chip"))
    sys.exit(exit_code())
