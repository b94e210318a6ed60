# SPDX-License-Identifier: Apache-2.0
"""Records callbacks and answers them as the path says: /204/..., /500-then-204/..., /302/..., /410/...

GET /calls?path=P&count=N waits until P has been called N times and lists the calls. The first line on standard
output is the port.
"""

import http.server
import json
import threading
import urllib.parse

calls = []
changed = threading.Condition()


class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        with changed:
            earlier = sum(call["path"] == self.path for call in calls)
            headers = {name.lower(): value for name, value in self.headers.items()}
            calls.append({"path": self.path, "headers": headers, "body": body})
            changed.notify_all()
        wanted = self.path.split("/")[1].split("-then-")
        status = int(wanted[min(earlier, len(wanted) - 1)])
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/204/redirected")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        path, count = query["path"][0], int(query["count"][0])
        with changed:
            changed.wait_for(lambda: sum(call["path"] == path for call in calls) >= count, timeout=60)
            body = json.dumps([call for call in calls if call["path"] == path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_address[1])
server.serve_forever()
