# SPDX-License-Identifier: Apache-2.0
"""Verifies a badge's signature of the challenge of a script of `token-server`; needs the program `openssl`."""
import base64, json, subprocess, tempfile

# DER SubjectPublicKeyInfo of P-256 up to the point (RFC 5480).
PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")


def reply(status, data="", **more):
    print(json.dumps({"status": status, "data": data, **more}))


def refusal(call, proof, point):
    """Why the proof is not accepted; None if it is."""
    if len(point) != 65:
        return "there is no public key on P-256"
    with tempfile.NamedTemporaryFile() as key, tempfile.NamedTemporaryFile() as signature:
        key.write(PREFIX + point)
        signature.write(base64.b64decode(proof["signature"]))
        key.flush(), signature.flush()
        # The challenge is the digest.
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", key.name, "-sigfile", signature.name]
        digest = base64.urlsafe_b64decode(call["challenge"] + "=")
        result = subprocess.run(command, input=digest, capture_output=True, check=False)
    return None if result.returncode == 0 else "the signature is wrong"
