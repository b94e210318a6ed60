#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A resource server for `approval-token call`: says who calls it, and how the user has logged in.

It asks the token server about each access token (RFC 7662), and gives it the proof of the key to which the token is bound
(RFC 9449): the token alone proves nothing. Python's standard library only; see docs/token-server.md,
"Resource servers".

  --url            https://HOST:PORT of this resource server, as users call it
  --certificate    PEM file for TLS
  --key            PEM file of its key
  --issuer         https://HOST[:PORT] of the token server
  --client         ID:SECRET of `token-server api-client add ID --introspection`
  --authorities    PEM file of the authority of the token server's certificate, if it is not a public one
"""
import argparse, base64, http.server, json, ssl, urllib.parse, urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def introspection(self, token):
        call = {"htm": self.command, "htu": options.url + self.path, "dpop": ",".join(self.headers.get_all("DPoP", []))}
        request = urllib.request.Request(
            options.issuer + "/oauth/api/v2/token/introspect", urllib.parse.urlencode({"token": token, **call}).encode(),
            {"Authorization": "Basic " + base64.b64encode(options.client.encode()).decode()})
        return json.load(urllib.request.urlopen(request, timeout=10, context=trust))

    def answer(self):
        size = self.headers.get("Content-Length", "0")
        if not size.isdecimal() or int(size) > 1 << 20:
            return self.send_error(413)
        body = self.rfile.read(int(size))
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        user = self.introspection(token) if scheme.lower() == "dpop" and token else {}
        # Without `proof_verified` the token server is one of an earlier version, which knows no proofs.
        is_user = user.get("proof_verified") and user.get("scope") == "user"
        reply = {"user": user["sub"], "amr": user["amr"], "received": len(body)} if is_user else {"error": user.get("error", "invalid_token")}
        content = json.dumps(reply).encode()
        self.send_response(200 if is_user else 401)
        self.send_header("Content-Length", str(len(content)))
        if not is_user:
            self.send_header("WWW-Authenticate", "DPoP error=" + reply["error"])
        if "dpop_nonce" in user:
            self.send_header("DPoP-Nonce", user["dpop_nonce"])
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("url", "certificate", "key", "issuer", "client", "authorities"):
    parser.add_argument("--" + name, required=name != "authorities")
options = parser.parse_args()
trust = ssl.create_default_context(cafile=options.authorities)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(options.certificate, options.key)
address = urllib.parse.urlsplit(options.url)
server = http.server.ThreadingHTTPServer((address.hostname, address.port), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("listening on " + options.url, flush=True)
server.serve_forever()
