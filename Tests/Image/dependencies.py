#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs that list the Swift packages of a package and of the image, on files as SwiftPM writes them.

usage: dependencies.py

Exit code 1: a check failed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
REVISIONS = {"swift-log": "1" * 40, "swift-nio": "2" * 40, "swift-unused": "3" * 40}
LOG = f"swift-log 1.16.2 {'1' * 40} https://github.com/apple/swift-log"
NIO = f"swift-nio 2.101.2 {'2' * 40} https://github.com/apple/swift-nio.git"


def run(program, *arguments, text=None):
    return subprocess.run([sys.executable, PACKAGING / program, *arguments], input=text, capture_output=True, text=True)


class Build:
    """A build directory with two programs, both of which have a module of this project."""

    def __init__(self, directory):
        self.directory = directory
        self.release = directory / "triple/release"
        packages = [("swift-nio", "2.101.2", NIO), ("swift-log", "1.16.2", LOG), ("swift-unused", "9.0.0", "x https://unused")]
        self.write(directory / "workspace-state.json", json.dumps({"object": {"dependencies": [
            {"packageRef": {"identity": name, "location": line.split()[-1]}, "subpath": name,
             "state": {"checkoutState": {"revision": REVISIONS[name], "version": version}}}
            for name, version, line in packages]}}))
        self.write(self.release / "Own.build/sources", "/src/Sources/Own/a.swift\n")
        self.write(self.release / "Logging.build/sources", "/build/checkouts/swift-log/Sources/Logging/a.swift\n")
        # Of C: a list of what each object file was compiled from.
        self.write(self.release / "CNIO.build/src/a.c.d", "dependencies: \\\n  /build/checkouts/swift-nio/Sources/CNIO/src/a.c\n")
        self.write(self.release / "Unused.build/sources", "/build/checkouts/swift-unused/Sources/Unused/a.swift\n")
        self.link("device", "Own.build/a.swift.o", "Logging.build/a.swift.o")
        self.link("server", "Own.build/a.swift.o", "CNIO.build/src/a.c.o", "Logging.build/a.swift.o")

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def link(self, program, *objects):
        self.write(self.release / f"{program}.product/Objects.LinkFileList",
                   "".join(f"/work/.build/triple/release/{name}\n" for name in objects))

    def listed(self, *programs):
        """The lines, or nothing after an error."""
        done = run("swift_dependencies.py", self.directory, "triple", *programs)
        return done.stdout.splitlines() if done.returncode == 0 else None


def check_list(build):
    check("a program has the packages that are linked into it, and no other", build.listed("device") == [LOG])
    check("so has one with a module of C; the lines are sorted", build.listed("server") == [LOG, NIO])
    check("a package of several programs is listed once", build.listed("device", "server") == [LOG, NIO])
    build.link("alone", "Own.build/a.swift.o")
    check("an empty list is an error", build.listed("alone") is None)
    check("together with another program it is none", build.listed("alone", "device") == [LOG])
    build.link("other", "Other.build/a.swift.o")
    check("so is a module whose sources are not known", build.listed("device", "other") is None)
    build.write(build.release / "Other.build/sources", "/build/checkouts/swift-other/Sources/Other/a.swift\n")
    check("and a package whose version is not known", build.listed("device", "other") is None)


def check_document(directory):
    (directory / "dependencies").write_text(f"{LOG}\n{NIO}\n")
    packages = f"approval-token 0.1.0 {'a' * 64}\nlibc6 2.41-12 {'b' * 64}\n"
    made = run("image/sbom.py", "0.1.0", "1000000000", directory / "dependencies", text=packages)
    document = json.loads(made.stdout)
    found = {package["name"]: package for package in document["packages"]}
    check("the SPDX document has the Debian packages and those of Swift",
          set(found) == {"approval-token.img", "approval-token", "libc6", "swift-log", "swift-nio"})
    nio = found["swift-nio"]
    check("with version, revision and address",
          (nio["versionInfo"], nio["downloadLocation"]) == ("2.101.2", f"git+https://github.com/apple/swift-nio.git@{'2' * 40}"))
    check("an address without .git is one of git, too",
          found["swift-log"]["downloadLocation"] == f"git+https://github.com/apple/swift-log.git@{'1' * 40}")
    check("and with the identifier for vulnerability databases",
          nio["externalRefs"][0]["referenceLocator"] == "pkg:swift/github.com/apple/swift-nio@2.101.2")
    related = {(relation["spdxElementId"], relation["relationshipType"], relation["relatedSpdxElement"])
               for relation in document["relationships"]}
    check("the token's package links them", {("SPDXRef-Package-approval-token", "STATIC_LINK", found[name]["SPDXID"])
                                             for name in ("swift-log", "swift-nio")} <= related)
    (directory / "dependencies").write_text(f"{LOG}\n")
    other = json.loads(run("image/sbom.py", "0.1.0", "1000000000", directory / "dependencies", text=packages).stdout)
    check("another list gives the document another name", other["documentNamespace"] != document["documentNamespace"])


if __name__ == "__main__":
    print("the Swift packages")
    with tempfile.TemporaryDirectory() as name:
        check_list(Build(pathlib.Path(name) / "build"))
        check_document(pathlib.Path(name))
    sys.exit(exit_code())
