#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the program that makes the host key of a board, on directories of this machine; gives scripts/image files that are
no public keys; and checks an image that was made with --ssh-key.

usage: ssh.py [IMAGE KEYS]

KEYS is the file that was given to --ssh-key. Exit code 1: a check failed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from card import Card
from checks import check, exit_code

REPOSITORY = pathlib.Path(__file__).parents[2]
PROGRAMS = "usr/libexec/approval-token"
KEY = "state/ssh/ssh_host_ed25519_key"
# What closes each other way to log in.
SETTINGS = {
    "hostkey": f"/{KEY}", "allowusers": "root", "permitrootlogin": "prohibit-password", "authenticationmethods": "publickey",
    "authorizedkeysfile": "/root/.ssh/authorized_keys", "passwordauthentication": "no", "kbdinteractiveauthentication": "no",
    "usepam": "no", "disableforwarding": "yes", "subsystem": "sftp /usr/lib/openssh/sftp-server"}


class Board:
    """Directories in which the program that makes the host key runs, with a command `mount` that does nothing."""

    def __init__(self, directory):
        self.root = pathlib.Path(directory)
        for name in ("boot/firmware", "state", "run", "commands", PROGRAMS):
            (self.root / name).mkdir(parents=True)
        for part, name in (("root", "card-functions"), ("ssh", "make-host-key")):
            shutil.copy(REPOSITORY / "packaging/image" / part / PROGRAMS / name, self.root / PROGRAMS)
        self.set_mount("exit 0")

    def set_mount(self, text):
        (self.root / "commands/mount").write_text(f"#!/bin/sh\n{text}\n")
        (self.root / "commands/mount").chmod(0o755)

    def start(self):
        environment = {"PATH": f"{self.root}/commands:/usr/bin:/bin", "APPROVAL_TOKEN_ROOT": str(self.root)}
        return subprocess.run([self.root / PROGRAMS / "make-host-key"], env=environment, capture_output=True).returncode

    def log(self):
        log = self.root / "boot/firmware/approval-token.log"
        return log.read_text() if log.exists() else ""


def fingerprint(path):
    return subprocess.run(["ssh-keygen", "-l", "-f", path], check=True, capture_output=True, text=True).stdout.split()[1]


def check_host_key():
    with tempfile.TemporaryDirectory() as directory:
        board = Board(directory)
        key = board.root / KEY
        key.parent.mkdir()
        # A power loss has interrupted the first start.
        key.with_name(key.name + ".new").write_text("half a key")
        check("the first start of a board makes a host key", board.start() == 0 and key.exists())
        check("that only root reads, and nothing else", key.stat().st_mode & 0o777 == 0o600 and
              key.parent.stat().st_mode & 0o777 == 0o700 and list(key.parent.iterdir()) == [key])
        check("the log on the SD card has its fingerprint", board.log().endswith(f"  the SSH host key is {fingerprint(key)}\n"))
        first, lines = key.read_bytes(), board.log()
        check("the next start keeps it", board.start() == 0 and key.read_bytes() == first and board.log() == lines)
        key.unlink()
        check("after a factory reset there is another one", board.start() == 0 and key.read_bytes() != first)
        key.unlink()
        board.set_mount("exit 32")
        check("there is one also if the log cannot be written", board.start() == 0 and key.exists())


def refusal(scratch, text):
    """What scripts/image prints when it refuses a file with this text; empty if it does not refuse it."""
    keys = pathlib.Path(scratch) / "keys"
    keys.write_text(text)
    # Without a package it would end before it makes anything.
    done = subprocess.run([REPOSITORY / "scripts/image", "--package", "/no-package.deb", "--ssh-key", keys],
                          capture_output=True, text=True)
    return done.stderr if done.returncode == 64 else ""


def check_refusals():
    with tempfile.TemporaryDirectory() as scratch:
        secret = pathlib.Path(scratch) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", secret], check=True)
        public = secret.with_name("key.pub").read_text()
        check("a file without a key is refused", "there is no public key" in refusal(scratch, "# a comment\n\n"))
        check("so is one with another line", "not a public key" in refusal(scratch, public + "no key\n"))
        check("and a private key", "is a private key" in refusal(scratch, secret.read_text()))


def settings_of(text):
    """The settings of an sshd_config, of which the first one of a name counts."""
    lines = [line.split(maxsplit=1) for line in reversed(text.splitlines()) if line and not line.startswith("#")]
    return {name.lower(): value for name, value in lines}


def check_image(card, keys):
    """`card`: the roots of an image."""
    names = card.root_names()

    def links_to_nothing(path):
        return f"squashfs-root/etc/systemd/{path} -> /dev/null\n" in names

    check("there is an SSH server, which starts with the system", "squashfs-root/usr/sbin/sshd\n" in names and
          "/multi-user.target.wants/ssh.service -> " in names)
    check("there is no host key", "/ssh_host_" not in names)
    check("the keys are those that were given", card.root_file("/root/.ssh/authorized_keys") == keys.read_bytes())
    check("only root reads and changes them",
          re.search(r"^-rw------- root/root .* squashfs-root/root/\.ssh/authorized_keys$", names, re.M) and
          re.search(r"^drwx.-..-. root/root .* squashfs-root/root/\.ssh$", names, re.M))
    check("sshd_config has one way to log in, and no other settings",
          settings_of(card.root_file("/etc/ssh/sshd_config").decode()) == SETTINGS)
    users = dict(line.split(":")[:2] for line in card.root_file("/etc/shadow").decode().splitlines())
    check("no user has a password", users["root"] == "*" and all(re.fullmatch(r"[!*]+", password) for password in users.values()))
    check("nothing else starts it, or makes a host key", all(map(links_to_nothing, (
        "system/ssh.socket", "system/sshd-keygen.service", "system-generators/systemd-ssh-generator"))))
    unit = card.root_file("/etc/systemd/system/ssh.service.d/image.conf").decode()
    check("it starts with the partition of the state only, after a reset, and then the host key is made first",
          "AssertPathIsMountPoint=/state\nAfter=approval-token-reset.service\n" in unit and
          re.findall("^ExecStartPre=(.*)$", unit, re.M) == ["", f"/{PROGRAMS}/make-host-key", "/usr/sbin/sshd -t"] and
          re.search(rf"^-rwxr-xr-x root/root .* squashfs-root/{PROGRAMS}/make-host-key$", names, re.M))
    reset = card.root_file("/etc/systemd/system/approval-token-reset.service.d/ssh.conf").decode()
    check("a factory reset removes the host key", re.search(f"^ExecStartPre=.*/shred .*--remove /{KEY}$", reset, re.M))


def main():
    print("the SSH server")
    check_host_key()
    check_refusals()
    if sys.argv[1:]:
        image, keys = map(pathlib.Path, sys.argv[1:])
        check_image(Card(image), keys)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
