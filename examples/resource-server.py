#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A resource server for `approval-token call`: says who calls it, and how the user has logged in.

It asks the token server about each access token (RFC 7662), and requires the proof of the key to which the token is bound
(RFC 9449): the token alone proves nothing. Python's standard library only; see docs/token-server.md,
"Resource servers".
"""
import argparse, base64, collections, hashlib, http.server, json, secrets, ssl, urllib.parse, urllib.request

# P-256 (FIPS 186-5), without a library: only to verify, so that nothing here is secret.
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
     0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    slope = (3 * a[0] ** 2 - 3) * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope**2 - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(factor, point):
    total = None
    while factor:
        total, point, factor = add(total, point) if factor & 1 else total, add(point, point), factor >> 1
    return total


def is_signed(message, signature, key):
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    x, y = key
    if len(signature) != 64 or not (0 < r < N and 0 < s < N and x < P and y < P) or (y * y - x**3 + 3 * x - B) % P:
        return False
    digest, inverse = int.from_bytes(hashlib.sha256(message).digest(), "big"), pow(s, -1, N)
    point = add(times(digest * inverse % N, G), times(r * inverse % N, key))
    return point is not None and point[0] % N == r


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


# Each nonce counts once: a proof can be neither made in advance nor sent twice.
nonces = collections.deque(maxlen=1000)


def introspection(token):
    request = urllib.request.Request(
        options.issuer + "/oauth/api/v2/token/introspect", urllib.parse.urlencode({"token": token}).encode(),
        {"Authorization": "Basic " + base64.b64encode(options.client.encode()).decode()})
    with urllib.request.urlopen(request, timeout=10, context=trust) as response:
        return json.load(response)


def caller(method, path, headers):
    """The introspected access token of the request. Raises ValueError with the error code of RFC 9449 section 7.1."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "dpop":
        raise ValueError("invalid_token")
    try:
        (proof,) = headers.get_all("DPoP", [])
        head, claims, signature = proof.split(".")
        header, said = json.loads(decoded(head)), json.loads(decoded(claims))
        jwk = header["jwk"]
        key = tuple(int.from_bytes(decoded(jwk[name]), "big") for name in ("x", "y"))
        is_proof = (
            (header["typ"], header["alg"], jwk["kty"], jwk["crv"]) == ("dpop+jwt", "ES256", "EC", "P-256")
            and is_signed(f"{head}.{claims}".encode(), decoded(signature), key)
            and (said["htm"], said["htu"]) == (method, options.url + path.partition("?")[0])
            and said["ath"] == encoded(hashlib.sha256(token.encode()).digest()))
        members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
        thumbprint = encoded(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_proof = False
    if not is_proof:
        raise ValueError("invalid_dpop_proof")
    try:
        nonces.remove(said.get("nonce"))
    except ValueError:
        raise ValueError("use_dpop_nonce") from None
    user = introspection(token)
    if not user.get("active") or user.get("scope") != "user" or user.get("cnf", {}).get("jkt") != thumbprint:
        raise ValueError("invalid_token")
    return user


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def answer(self):
        size = self.headers.get("Content-Length", "0")
        if not size.isdecimal() or int(size) > 1 << 20:
            return self.send_error(413)
        body = self.rfile.read(int(size))
        try:
            user = caller(self.command, self.path, self.headers)
        except ValueError as error:
            nonces.append(nonce := secrets.token_urlsafe(16))
            return self.reply(401, {"error": str(error)}, {"WWW-Authenticate": f'DPoP error="{error}"', "DPoP-Nonce": nonce})
        self.reply(200, {"user": user["sub"], "amr": user["amr"], "received": len(body)})

    def reply(self, status, value, headers={}):
        content = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
for name, help in {
    "url": "https://HOST:PORT of this resource server, as users call it", "certificate": "PEM file for TLS",
    "key": "PEM file of its key", "issuer": "https://HOST[:PORT] of the token server",
    "authorities": "PEM file of the authority of the token server's certificate",
    "client": "ID:SECRET of `token-server api-client add ID --introspection`",
}.items():
    parser.add_argument("--" + name, required=name != "authorities", help=help)
options = parser.parse_args()
trust = ssl.create_default_context(cafile=options.authorities)
address = urllib.parse.urlsplit(options.url)
server = http.server.ThreadingHTTPServer((address.hostname, address.port), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("listening on " + options.url, flush=True)
server.serve_forever()
