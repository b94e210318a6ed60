# SPDX-License-Identifier: Apache-2.0
"""Writes the entry of an image for Raspberry Pi Imager, a repository with one image (`os_list`).

usage: imager_entry.py VERSION SECONDS PREFIX IMAGE

SECONDS is the release date, since 1970. PREFIX is where IMAGE.xz will be published. IMAGE and IMAGE.xz are files.
"""
import datetime
import hashlib
import json
import pathlib
import sys


def measured(path):
    with open(path, "rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def entry(version, seconds, prefix, image):
    compressed = image.with_name(image.name + ".xz")
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).date()
    (size, sha256), (download_size, download_sha256) = measured(image), measured(compressed)
    return {
        "name": f"Approval Token {version}",
        "description": "Approves logins and payments with a button. Raspberry Pi 3, 4 and Zero 2 W",
        "url": prefix + compressed.name, "release_date": str(date),
        "extract_size": size, "extract_sha256": sha256,
        "image_download_size": download_size, "image_download_sha256": download_sha256,
        # Imager's names; Zero 2 W is one of the first. No settings of Imager are applied.
        "devices": ["pi3-64bit", "pi4-64bit"], "init_format": "none"}


if __name__ == "__main__":
    words = sys.argv[1:]
    print(json.dumps({"os_list": [entry(words[0], int(words[1]), words[2], pathlib.Path(words[3]))]}, indent=1))
