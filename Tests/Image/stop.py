#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that reports a stopped service, on directories of this machine, with scripted commands.

usage: stop.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

ROOT = pathlib.Path(__file__).parents[2] / "packaging/image/root"
PROGRAM = ROOT / "usr/libexec/approval-token/report-stop"
SYSTEM = ROOT / "etc/systemd/system"


def reported(state, line, result="exit-code"):
    """The text in the log on the SD card, and the commands that blink. Only lines of the service itself are found in the
    journal."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name in ("boot/firmware", "commands", "run"):
            (root / name).mkdir(parents=True)
        (root / "line").write_text(line)
        for command, text in (
                ("mount", ""), ("systemd-run", f'echo "$@" >{root}/blinks'), ("journalctl", f'case "$*" in *" _SYSTEMD_UNIT=approval-token.service") cat {root}/line ;; esac'),
                ("systemctl", f'case "$*" in *=ActiveState*) echo {state} ;; *=Result*) echo {result} ;; esac')):
            (root / "commands" / command).write_text(f"#!/bin/sh\n{text}\n")
            (root / "commands" / command).chmod(0o755)
        environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
        subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL, check=True)
        log = root / "boot/firmware/approval-token.log"
        blinks = root / "blinks"
        return log.read_text().split("  ", 1)[1] if log.exists() else "", blinks.read_text() if blinks.exists() else ""


def is_reported(text, *arguments):
    """Also by the activity LED."""
    log, blinks = reported(*arguments)
    return log == f"the service has stopped: {text}\n" and blinks.endswith("/blink 5\n")


def main():
    print("a service that has stopped")
    check("the log has its last line, and how it ended; the activity LED blinks five times",
          is_reported("the vault is damaged (exit-code)", "failed", "the vault is damaged\n"))
    check("also of one that has written nothing", is_reported("no line in its log (signal)", "inactive", "", "signal"))
    check("also of one that was started too often",
          is_reported("no line in its log (start-limit-hit)", "inactive", "", "start-limit-hit"))
    check("also of one that was not started",
          is_reported("no line in its log (a unit that it needs has failed)", "inactive", "", "success"))
    check("a long line is cut", is_reported("x" * 500 + " (exit-code)", "failed", "x" * 5000 + "\n"))
    for state in ("activating", "active"):
        check(f"one that is restarted ({state}) is not reported", reported(state, "a fault\n") == ("", ""))
    named = [line.removeprefix("OnFailure=") for line in (SYSTEM / "approval-token.service.d/image.conf").read_text().splitlines()
             if line.startswith("OnFailure=")]
    check("systemd starts the program when the service has failed", len(named) == 1 and
          "ExecStart=/usr/libexec/approval-token/report-stop" in (SYSTEM / named[0]).read_text().splitlines())
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
