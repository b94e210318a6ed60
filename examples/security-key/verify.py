# SPDX-License-Identifier: Apache-2.0
"""Verifies a security key's signature over the challenge of a script of `token-server`; needs the program `openssl`."""
import base64, hashlib, json, subprocess, tempfile, urllib.parse

# DER SubjectPublicKeyInfo of P-256 up to the point (RFC 5480).
PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")


def reply(status, data="", **more):
    print(json.dumps({"status": status, "data": data, **more}))


def refusal(call, proof, point):
    """Why the proof is not accepted; None if it is."""
    data, challenge = base64.b64decode(proof["authenticator_data"]), base64.urlsafe_b64decode(call["challenge"] + "=")
    host = urllib.parse.urlsplit(call["iss"]).netloc.rsplit(":", 1)[0]
    if len(data) < 37 or data[:32] != hashlib.sha256(host.encode()).digest():
        return "it is for another server"
    if not data[32] & 1:
        return "the key was not touched"
    if len(point) != 65:
        return "there is no public key on P-256"
    with tempfile.NamedTemporaryFile() as key, tempfile.NamedTemporaryFile() as signature:
        key.write(PREFIX + point)
        signature.write(base64.b64decode(proof["signature"]))
        key.flush(), signature.flush()
        command = ["openssl", "dgst", "-sha256", "-keyform", "DER", "-verify", key.name, "-signature", signature.name]
        result = subprocess.run(command, input=data + challenge, capture_output=True, check=False)
    return None if result.returncode == 0 else "the signature is wrong"
