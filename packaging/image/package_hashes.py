# SPDX-License-Identifier: Apache-2.0
"""Adds the SHA-256 of each package's file to a list of installed packages.

usage: package_hashes.py PACKAGES DEB <LIST

PACKAGES is the index of a Debian repository, DEB the file of one more package. Lines of LIST are NAME VERSION; lines of the
output are NAME VERSION SHA-256. Fails if a package of the list is in neither.
"""
import hashlib
import pathlib
import subprocess
import sys


def entries(index):
    """(name, version): SHA-256, from the paragraphs of an index."""
    for paragraph in index.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and not line.startswith(" "))
        yield (fields["Package"], fields["Version"]), fields["SHA256"]


def main():
    index, package = map(pathlib.Path, sys.argv[1:])
    hashes = dict(entries(index.read_text()))
    shown = subprocess.run(
        ["dpkg-deb", "--show", "--showformat=${Package} ${Version}", package], check=True, capture_output=True, text=True)
    hashes[tuple(shown.stdout.split())] = hashlib.sha256(package.read_bytes()).hexdigest()
    for line in sorted(sys.stdin):
        name, version = line.split()
        if (name, version) not in hashes:
            sys.exit(f"package_hashes.py: no package file is known for {name} {version}")
        print(name, version, hashes[name, version])


if __name__ == "__main__":
    main()
