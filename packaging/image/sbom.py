# SPDX-License-Identifier: Apache-2.0
"""Writes the list of an image's packages as an SPDX 2.3 document.

usage: sbom.py VERSION SECONDS <LIST

SECONDS is the document's date, since 1970. Lines of LIST are NAME VERSION SHA-256.
"""
import datetime
import hashlib
import json
import re
import sys
import urllib.parse

NOTHING = {
    "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
    "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}


def identifier(name):
    """SPDX permits letters, digits, `.` and `-`."""
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", lambda found: f"-{ord(found[0]):x}-", name)


def entry(name, version, sha256):
    place = "pkg:deb/debian/" if name != "approval-token" else "pkg:deb/"
    locator = f"{place}{urllib.parse.quote(name)}@{urllib.parse.quote(version)}?distro=trixie"
    return {
        "SPDXID": identifier(name), "name": name, "versionInfo": version, **NOTHING,
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha256}],
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]}


def document(version, seconds, text):
    image = {"SPDXID": "SPDXRef-Image", "name": "approval-token.img", "versionInfo": version, **NOTHING}
    packages = [entry(*line.split()) for line in text.splitlines()]
    relation = {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Image"}
    contains = [
        {"spdxElementId": "SPDXRef-Image", "relationshipType": "CONTAINS", "relatedSpdxElement": package["SPDXID"]}
        for package in packages]
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"approval-token-image-{version}",
        "documentNamespace": "https://spdx.org/spdxdocs/approval-token-image-" + hashlib.sha256(text.encode()).hexdigest(),
        "creationInfo": {"created": f"{date:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: approval-token-sbom.py"]},
        "packages": [image] + packages, "relationships": [relation] + contains}


if __name__ == "__main__":
    print(json.dumps(document(sys.argv[1], int(sys.argv[2]), sys.stdin.read()), indent=1))
