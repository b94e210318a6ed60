# SPDX-License-Identifier: Apache-2.0
"""Lists the Swift packages that are linked into programs, as SwiftPM has resolved them.

usage: swift_dependencies.py DIRECTORY TRIPLE PROGRAM…

DIRECTORY is that of the release build (--scratch-path). Lines of the output are IDENTITY VERSION REVISION URL, sorted. Fails
if it is not known from where a part of a program is, or if no Swift package is linked.
"""
import json
import pathlib
import re
import sys


def modules(release, program):
    """The modules whose object files are linked into the program."""
    objects = (release / f"{program}.product/Objects.LinkFileList").read_text()
    return {release / f"{name}.build" for name in re.findall(r"/([^/\s]+)\.build/", objects)}


def checkouts(module):
    """The directories of checkouts that the sources of a module are in; none for those of this project."""
    # SwiftPM writes one list for a module of Swift, and the compiler of C one for each object file.
    lists = [file for file in [module / "sources"] if file.exists()] or sorted(module.rglob("*.d"))
    if not lists:
        sys.exit(f"swift_dependencies.py: there is no list of the sources of {module}")
    return {name for file in lists for name in re.findall(r"/checkouts/([^/\s]+)/", file.read_text())}


def resolved(directory):
    """(checkout, line) of each package that SwiftPM has checked out."""
    for package in json.loads((directory / "workspace-state.json").read_text())["object"]["dependencies"]:
        of, state = package["packageRef"], package["state"].get("checkoutState")
        if state:
            version = state.get("version") or state.get("branch") or "-"
            yield package["subpath"], f"{of['identity']} {version} {state['revision']} {of['location']}"


def main():
    directory, programs = pathlib.Path(sys.argv[1]), sys.argv[3:]
    release, lines = directory / sys.argv[2] / "release", dict(resolved(directory))
    linked = {name for program in programs for module in modules(release, program) for name in checkouts(module)}
    if unknown := linked - set(lines):
        sys.exit(f"swift_dependencies.py: the versions of {', '.join(sorted(unknown))} are not known")
    if not linked:
        sys.exit(f"swift_dependencies.py: no Swift package is linked into {' '.join(programs)}")
    print("\n".join(sorted(lines[name] for name in linked)))


if __name__ == "__main__":
    main()
