# SPDX-License-Identifier: Apache-2.0
"""Writes the list of an image's packages as an SPDX 2.3 document.

usage: sbom.py VERSION SECONDS DEPENDENCIES <LIST

SECONDS is the document's date, since 1970. Lines of LIST are NAME VERSION SHA-256. DEPENDENCIES is the list of the Swift
packages that are linked into the programs of approval-token, in which lines are IDENTITY VERSION REVISION URL.
"""
import datetime
import hashlib
import json
import pathlib
import re
import sys
import urllib.parse

NOTHING = {
    "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
    "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}


def identifier(kind, name):
    """SPDX permits letters, digits, `.` and `-`."""
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", lambda found: f"-{ord(found[0]):x}-", name)


def entry(name, version, sha256):
    place = "pkg:deb/debian/" if name != "approval-token" else "pkg:deb/"
    locator = f"{place}{urllib.parse.quote(name)}@{urllib.parse.quote(version)}?distro=trixie"
    return {
        "SPDXID": identifier("Package", name), "name": name, "versionInfo": version, **NOTHING,
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha256}],
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]}


def dependency(identity, version, revision, url):
    address = url.removesuffix(".git")
    place = urllib.parse.quote(address.removeprefix("https://"))
    return {
        "SPDXID": identifier("Swift", identity), "name": identity, "versionInfo": version, **NOTHING,
        "downloadLocation": f"git+{address}.git@{revision}",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
             "referenceLocator": f"pkg:swift/{place}@{urllib.parse.quote(version)}"}]}


def document(version, seconds, text, linked):
    image = {"SPDXID": "SPDXRef-Image", "name": "approval-token.img", "versionInfo": version, **NOTHING}
    packages = [entry(*line.split()) for line in text.splitlines()]
    dependencies = [dependency(*line.split()) for line in linked.splitlines()]
    relation = {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Image"}
    contains = [
        {"spdxElementId": "SPDXRef-Image", "relationshipType": "CONTAINS", "relatedSpdxElement": package["SPDXID"]}
        for package in packages]
    links = [
        {"spdxElementId": identifier("Package", "approval-token"), "relationshipType": "STATIC_LINK",
         "relatedSpdxElement": package["SPDXID"]} for package in dependencies]
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"approval-token-image-{version}",
        "documentNamespace":
            "https://spdx.org/spdxdocs/approval-token-image-" + hashlib.sha256((text + linked).encode()).hexdigest(),
        "creationInfo": {"created": f"{date:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: approval-token-sbom.py"]},
        "packages": [image] + packages + dependencies, "relationships": [relation] + contains + links}


if __name__ == "__main__":
    dependencies = pathlib.Path(sys.argv[3]).read_text()
    print(json.dumps(document(sys.argv[1], int(sys.argv[2]), sys.stdin.read(), dependencies), indent=1))
