#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's functions for the FAT partition of the SD card from two programs at the same time.

usage: card_log.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

FUNCTIONS = pathlib.Path(__file__).parents[2] / "packaging/image/root/usr/libexec/approval-token/card-functions"
# A partition that is writable for one program at a time, and slow.
MOUNT = """case $2 in
  remount,rw) mkdir "{root}/writable" && sleep 0.2 ;;
  remount,ro) rmdir "{root}/writable" ;;
esac
"""


def main():
    print("the log on the SD card")
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name in ("boot/firmware", "commands", "run"):
            (root / name).mkdir(parents=True)
        mount = root / "commands/mount"
        mount.write_text("#!/bin/sh\n" + MOUNT.format(root=root))
        mount.chmod(0o755)
        environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
        (root / "boot/firmware/secret").write_text("secret")
        scripts = [f"report {number}" for number in range(3)] + ['erase "$card/secret"']
        programs = [
            subprocess.Popen(["/bin/sh", "-euc", f'. "$0"\n{script}', FUNCTIONS], env=environment, stdout=subprocess.DEVNULL)
            for script in scripts]
        check("programs that write at the same time end without an error", [p.wait() for p in programs] == [0] * len(programs))
        log = root / "boot/firmware/approval-token.log"
        lines = sorted(line.split("  ", 1)[1] for line in log.read_text().splitlines()) if log.exists() else []
        check("each line is in the log", lines == ["0", "1", "2"])
        check("what was to be erased is", not (root / "boot/firmware/secret").exists())
        check("the FAT partition is read-only again", not (root / "writable").exists())
        log.unlink()
        log.mkdir()
        failed = subprocess.run(["/bin/sh", "-euc", '. "$0"\nreport text\ntouch "$root/went-on"', FUNCTIONS], env=environment,
                                capture_output=True)
        check("a program goes on if the log cannot be written, and the partition is read-only", failed.returncode == 0 and
              (root / "went-on").exists() and not (root / "writable").exists())
        log.rmdir()
        log.write_text("an old line\n" * 5000)
        # In place of a full partition.
        (root / "boot/firmware/approval-token.log.new").mkdir()
        failed = subprocess.run(["/bin/sh", "-euc", '. "$0"\nreport text', FUNCTIONS], env=environment, capture_output=True)
        check("and if the log cannot be shortened", failed.returncode == 0 and not (root / "writable").exists())
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
