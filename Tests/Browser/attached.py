# SPDX-License-Identifier: Apache-2.0
"""Several tokens, and programs that ran before the bench."""
import os
import subprocess
import tempfile

from page import PIN, Page, check, folder, program, until

token = os.path.join(os.path.dirname(program), "approval-token")
server = os.path.join(os.path.dirname(program), "token-server")


class Process:
    """A program until the end of a `with`."""

    def __init__(self, *command):
        self.command = command

    def __enter__(self):
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.line = self.child.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait(20)


def bench(*options):
    return Process(program, "--page", folder, *options)


def refusal(*options):
    """What the bench says instead of starting."""
    run = subprocess.run([program, "--page", folder, *options], capture_output=True, text=True, timeout=60)
    return run.stderr if run.returncode else ""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def play():
    several()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        attached(directory)


def several():
    with bench("--tokens", "2") as running:
        page = Page()
        try:
            page.driver.get(running.line.split()[-1])
            check("the first of several tokens is shown", page.idle())
            page.select("bob")
            check("the second token has its own board", page.idle() and "bob" in page.text("#token-title"))
            page.start("login")
            check("its user is asked", page.asks("confirmation wanted"))
            page.accessible("several tokens")
            page.picture("several")
            page.select("alice")
            check("the first token is not asked", page.text("#meaning") == "idle, connected"
                  and page.text("#outcome-title") == "No request yet")
            page.start("login")
            page.asks("confirmation wanted")
            page.hold(1)
            check("the first user approves", page.outcome("Approved") and "alice has" in page.text("#outcome-text"))
            page.select("bob")
            check("the second user's request still waits", page.text("#outcome-title") == "Waiting for the token")
            page.hold(1)
            check("the second user approves", page.outcome("Approved") and "bob has" in page.text("#outcome-text"))
            # More requests of the second token than the list has, and then a change at the first.
            check("a step of a token whose requests have left the list is shown", page.driver.execute_async_script(
                "import(location.origin + '/timeline.js').then(({addStep}) => {"
                " for (let i = 0; i < 25; i++) addStep('portal', {by: 'portal', message: 'x', duration_us: 0}, Date.now(), 1);"
                " addStep('led', {meaning: 'a change', color: 'blue', at_ms: Date.now()}, Date.now(), 0);"
                " arguments[0](document.getElementById('timeline').textContent.includes('LED: a change')); })"))
            errors = page.errors()
            check("no error in the console with several tokens", not errors, "; ".join(errors)[:600])
        finally:
            page.driver.quit()


def attached(directory):
    state, data, portal = (os.path.join(directory, name) for name in ("token", "server", "portal.curlrc"))
    check("a token that does not run is named", f"the token in {state}" in refusal("--state", state))
    run(server, "init", "--directory", data)
    run(server, "user", "add", "ann", "--directory", data)
    secret = run(server, "api-client", "add", "shop", "--json", "--directory", data).split('"client_secret":"')[1].split('"')[0]
    with open(portal, "w") as file:
        file.write(f'user = "shop:{secret}"\ncacert = "{data}/ca.pem"\nsilent\n')
    with Process(token, "serve", "--board", "simulated", "--state", state), \
            Process(server, "serve", "--directory", data, "--port", "0") as serving:
        url = serving.line.split()[-1]
        check("a token server that does not answer is named", "cannot be reached" in refusal(
            "--server", "https://127.0.0.1:1", "--portal", portal))
        check("a file without a portal is named", "portal.curlrc: " in with_secret(portal, "silent\n", url))
        check("a portal that the token server refuses is named", "it refuses the portal shop" in with_secret(
            portal, f'user = "shop:x"\ncacert = "{data}/ca.pem"\n', url))
        with bench("--server", url, "--portal", portal, "--user", "ann", "--state", state) as running:
            play_attached(running.line.split()[-1], data)
        check("the end of the bench leaves both as they are", "connected" in run(token, "status", "--state", state)
              and "ann" in run(token, "accounts", "--state", state))


def with_secret(portal, text, url):
    other = os.path.join(os.path.dirname(portal), "other", "portal.curlrc")
    os.makedirs(os.path.dirname(other), exist_ok=True)
    with open(other, "w") as file:
        file.write(text)
    return refusal("--server", url, "--portal", other, "--user", "ann")


def play_attached(address, data):
    page = Page()
    try:
        page.driver.get(address)
        check("a token that ran before is shown", page.shows("must be enrolled (again)"))
        check("what the bench has not started cannot be made to fail", not any(
            page.find(f"#{name}").is_displayed() for name in ("server-away", "network-away", "clock-wrong"))
            and not page.find("[data-fault=power-loss]").is_displayed())
        page.open("#account")
        check("the page makes no URI of another token server", not page.find("#make-uri").is_displayed())
        uri = run(server, "activation-code", "ann", "--json", "--directory", data).split('"uri":"')[1].split('"')[0]
        page.find("#uri").send_keys(uri.replace("\\/", "/"))
        page.click("[data-command=enroll]")
        page.asks("new PIN wanted")
        page.type(PIN)
        page.asks("new PIN wanted, a second time")
        page.type(PIN)
        check("ann enrolls that token", page.says("#account-text", "The enrollment is done", 30))
        page.idle(60)
        check("only the types of that token server are shown", until(
            lambda: not page.find("[data-type=number]").is_displayed()) is not None
            and page.find("[data-type=payment]").is_displayed())
        page.start("payment")
        page.asks("PIN wanted")
        page.type(PIN)
        check("ann approves", page.outcome("Approved") and "ann has" in page.text("#outcome-text"))
        page.picture("attached")
        page.accessible("attached")
        # Before ann's enrollment, the token has no authenticators to list.
        errors = page.errors("409 (Conflict)")
        check("no error in the console with other programs", not errors, "; ".join(errors)[:600])
    finally:
        page.driver.quit()
