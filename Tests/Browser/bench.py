#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the bench in headless Chromium: usage: bench.py PROGRAM PAGE PICTURES CLOCK

Prints each check. Exit codes: 0 all passed, 1 one failed.
"""
import subprocess
import sys
import time
import urllib.error
import urllib.request

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import accounts
import attached
import ending
from page import PIN, Page, check, failed, folder, passed, program, until, wall_clock


def refused(address, data=None, **headers):
    """The status of a request of another program."""
    try:
        return urllib.request.urlopen(urllib.request.Request(address, data=data, headers=headers), timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code


def strangers(page, address):
    origin = address.split("/#")[0]
    port = origin.rsplit(":", 1)[1]
    body = b'{"type":"login","message":"x"}'
    check("a call without the cookie is refused", refused(origin + "/portal/start", body, Origin=origin) == 403)
    check("the feed without the cookie is refused", refused(origin + "/feed") == 403)
    check("another name of the host is refused", refused(origin + "/", Host=f"evil.example:{port}") == 403)
    check("another origin is refused", refused(origin + "/session", b"{}", Origin="http://evil.example") == 403)
    check("a wrong token is refused", refused(origin + "/session", b'{"token":"x"}', Origin=origin) == 403)
    check("a long text in place of a token is not read", refused(
        origin + "/session", b'{"token":"' + b"x" * 1200 + b'"}', Origin=origin) == 413)
    check("a wrong callback is refused", refused(origin + "/callback/x", b"{}") == 403)
    check("the description without the cookie is refused", refused(origin + "/portal-api.openapi.json") == 403)
    cookie = "; ".join(f"{c['name']}={c['value']}" for c in page.driver.get_cookies())
    check("the feed with the cookie alone, as a server at another port has it, is refused",
          "approval-bench" in cookie and refused(origin + "/feed", Cookie=cookie) == 403)
    check("no other file is served", refused(origin + "/..%2f..%2fPackage.swift") == 404)
    policy = urllib.request.urlopen(origin + "/").headers["Content-Security-Policy"]
    check("no inline script is allowed", "default-src 'none'" in policy and "unsafe" not in policy)


def approvals(page):
    check("a login starts", page.start("login"))
    check("the LED asks for a hold", page.asks("confirmation wanted"))
    page.picture("waiting")
    page.accessible("waiting")
    # The picture of the documents.
    page.driver.execute_script("scrollTo(0, 0)")
    page.hold(1, picture="bench")
    check("a hold of a second approves", page.outcome("Approved"))
    check("the callback comes", until(lambda: "called back" in page.text("#callback-text")) is not None)
    page.idle()
    check("the audit line comes", until(lambda: "audit chain" in page.text("#timeline")) is not None)
    page.picture("approved")
    page.accessible("approved")
    page.click(".replay")
    shown = "return document.querySelectorAll('.request:first-child .steps > li:not([hidden])').length"
    steps = page.driver.execute_script("return document.querySelectorAll('.request:first-child .steps > li').length")
    check("a request can be replayed slowly", until(lambda: 0 < page.driver.execute_script(shown) < steps, 3) is not None
          and until(lambda: page.driver.execute_script(shown) == steps, 40) is not None)
    paths = page.driver.execute_async_script(
        "fetch(document.querySelector('a[href*=openapi]').href).then((r) => r.json()).then((d) => arguments[0](Object.keys(d.paths)))")
    start = page.text("#curl").split("\n\n")[0]
    check("the page shows commands for curl", start.startswith("curl ") and "transaction_id" in subprocess.run(
        ["bash", "-c", start], capture_output=True, text=True, timeout=20).stdout)
    page.asks("confirmation wanted")
    page.hold(0.1, "#deny")
    page.idle()
    check("the page links to the description of the portal API", "/oauth/api/v4/authenticate/user" in paths)

    page.start("login")
    page.asks("confirmation wanted")
    ActionChains(page.driver, duration=0).click(page.find("#approve")).pause(0.15).click(page.find("#approve")).perform()
    check("two short presses deny", page.outcome("Denied"))
    page.picture("denied")
    page.idle()

    page.start("login")
    page.asks("confirmation wanted")
    page.hold(0.1, "#deny")
    check("the deny button denies", page.outcome("Denied"))
    page.idle()

    page.start("payment")
    check("the LED asks for the PIN", page.asks("PIN wanted"))
    page.type("24601")
    check("the portal reads of the wrong PIN", until(lambda: page.text("#outcome-text") == "Wrong PIN: 1 attempt used.") is not None)
    page.picture("wrong-pin")
    page.asks("PIN wanted")
    page.type(PIN)
    check("the right PIN approves", page.outcome("Approved"))
    page.idle()

    page.start("number")
    check("the LED asks for the number", page.asks("number or other data wanted"))
    digits = page.text("#number")
    page.picture("number")
    page.type(digits)
    check("after the number, the LED asks for a hold", page.asks("confirmation wanted"))
    page.hold(1)
    check("the number and a hold approve", page.outcome("Approved"))
    page.idle()

    page.start("hurry")
    check("a request that nobody answers expires", page.outcome("Expired", 20))
    page.picture("expired")
    page.idle()


def holds_that_are_none(page):
    """Every press that ends otherwise than by its release answers nothing."""
    page.start("login")
    page.asks("confirmation wanted")
    ends = {
        "a button that loses the focus": lambda: page.driver.execute_script("document.getElementById('approve').blur()"),
        "a pointer that leaves the button": lambda: ActionChains(page.driver, duration=0).move_by_offset(0, 260).perform(),
        "a window that loses the focus": lambda: page.driver.execute_script("window.dispatchEvent(new Event('blur'))"),
        "a hidden tab": lambda: page.driver.execute_script(
            "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
            "document.dispatchEvent(new Event('visibilitychange')); delete document.hidden;"
            "document.dispatchEvent(new Event('visibilitychange'))"),
    }
    for what, end in ends.items():
        ActionChains(page.driver, duration=0).click_and_hold(page.find("#approve")).perform()
        is_down = page.shows("held long enough: release to accept", 3)
        end()
        time.sleep(0.9)
        ActionChains(page.driver, duration=0).release().perform()
        time.sleep(0.3)
        check(f"{what} approves nothing", is_down and page.text("#outcome-title") == "Waiting for the token")
        check(f"after {what}, the LED asks again", page.asks("confirmation wanted"))
    # The space bar, pressed where nothing has the focus and released elsewhere, and then pressed for a moment.
    page.driver.execute_script("document.activeElement.blur()")
    ActionChains(page.driver, duration=0).key_down(Keys.SPACE).perform()
    is_down = page.shows("held long enough: release to accept", 3)
    page.driver.execute_script("document.getElementById('amount').focus()")
    ActionChains(page.driver, duration=0).key_up(Keys.SPACE).perform()
    page.driver.execute_script("document.activeElement.blur()")
    ActionChains(page.driver, duration=0).key_down(Keys.SPACE).key_up(Keys.SPACE).perform()
    time.sleep(0.3)
    check("a space bar that is released elsewhere approves nothing",
          is_down and page.text("#outcome-title") == "Waiting for the token")
    page.asks("confirmation wanted")
    # What does not hold the button does not release it. Each press is canceled afterwards.
    events = (
        "const button = document.getElementById('approve');"
        "const key = (kind, code) => button.dispatchEvent(new KeyboardEvent(kind, {code, bubbles: true, cancelable: true}));"
        "const pointer = (kind, pointerId) => button.dispatchEvent(new PointerEvent(kind, {button: 0, pointerId, bubbles: true}));"
        "%s; const isDown = button.classList.contains('down');"
        "window.dispatchEvent(new Event('blur')); return isDown && !button.classList.contains('down');")
    for what, script in {
        "another key or a pointer": "key('keydown', 'Space'); key('keyup', 'Enter'); pointer('pointerup', 7)",
        "a key or another pointer": "pointer('pointerdown', 7); key('keyup', 'Space'); pointer('pointerup', 8);"
                                    "pointer('pointercancel', 8); pointer('pointerleave', 8)",
    }.items():
        check(f"{what} releases no press", page.driver.execute_script(events % script))
        time.sleep(0.5)
    page.asks("confirmation wanted")
    # A click without a press, as screen readers make it.
    page.driver.execute_script("document.getElementById('approve').click()")
    check("a click without a press says what to do", page.says("#hold-text", "hold the button"))
    # A page that is busy handles a release late, with the time of the release.
    page.driver.execute_script(
        "const button = document.getElementById('approve');"
        "const event = (kind) => new PointerEvent(kind, {button: 0, pointerId: 99, bubbles: true});"
        "const down = event('pointerdown'); button.dispatchEvent(down);"
        "setTimeout(() => { const up = event('pointerup');"
        " Object.defineProperty(up, 'timeStamp', {value: down.timeStamp + 450}); button.dispatchEvent(up); }, 950)")
    is_down = page.shows("held long enough: release to accept", 3)
    time.sleep(0.8)
    check("a page that is busy approves nothing that was not held",
          is_down and page.text("#outcome-title") == "Waiting for the token")
    page.asks("confirmation wanted")
    # The network off, as for a tab that was put to sleep: the page says nothing any more, and releases too late.
    ActionChains(page.driver, duration=0).click_and_hold(page.find("#approve")).perform()
    time.sleep(0.3)
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
        "offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
    time.sleep(1.2)
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
        "offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    ActionChains(page.driver, duration=0).release().perform()
    time.sleep(0.5)
    check("a page without a network approves nothing", page.text("#outcome-title") == "Waiting for the token")
    page.driver.refresh()
    check("a page that is loaded again shows the request that waits", page.outcome("Waiting for the token"))
    page.asks("confirmation wanted")
    page.driver.execute_script("document.getElementById('approve').focus()")
    ActionChains(page.driver, duration=0).key_down(Keys.SPACE).pause(1).key_up(Keys.SPACE).perform()
    check("the space bar, held for a second, approves", page.outcome("Approved"))
    page.idle()


def faults(page, address):
    page.start("login")
    page.asks("confirmation wanted")
    page.click("[data-fault=attacker-login]")
    check("the swap to another request is visible", page.shows("another request", 5))
    page.picture("swap")
    page.asks("confirmation wanted")
    check("the timeline names the attacker", "an attacker" in page.text("#timeline"))
    page.hold(6.3)
    check("a hold of six seconds is \"not me\"", until(lambda: "denied: not me" in page.text("#timeline")) is not None)
    page.picture("not-me")
    page.asks("confirmation wanted")

    page.click("[data-fault=power-loss]")
    check("a power loss makes the LED dark", page.shows("off: no power", 5))
    page.picture("power-loss")
    check("after it the request is asked again", page.asks("confirmation wanted", 20))
    window = Page(800, 900)
    try:
        window.driver.get(address)
        check("a second window shows the same LED", window.shows("confirmation wanted"))
        check("a second window shows the same request", window.outcome("Waiting for the token"))
        page.hold(1)
        check("both windows read the approval", page.outcome("Approved") and window.outcome("Approved"))
        quiet(window, "the second window")
    finally:
        window.driver.quit()
    page.idle()

    page.click("#server-away")
    check("without the token server the LED says so", page.shows("idle, not connected", 20))
    page.picture("server-away")
    page.click("#server-away")
    check("the token connects again by itself", page.idle(90))

    page.click("#chip")
    check("an unplugged chip is dark", page.shows("unplugged: the LED is dark", 5))
    page.picture("unplugged")
    page.click("#chip")
    check("a chip that is plugged in shows again", page.idle())
    page.click("#keypad-plug")
    check("an unplugged keypad has no keys", until(lambda: page.find("[data-key='1']").get_property("disabled")) is not None)
    page.click("#keypad-plug")
    check("a keypad that is plugged in has keys", until(lambda: not page.find("[data-key='1']").get_property("disabled")) is not None)


def keyboard(page):
    """A PIN with the keyboard alone."""
    page.start("payment")
    page.asks("PIN wanted")
    page.picture("pin-wanted")
    page.driver.execute_script("document.querySelector('[data-key=\"clear\"]').focus()")
    ActionChains(page.driver, duration=0).send_keys(PIN[:2]).perform()
    page.asks("digits typed: Enter submits")
    ActionChains(page.driver, duration=0).send_keys(Keys.ENTER).perform()
    check("Enter at \"Clear\" discards the digits", page.asks("PIN wanted"))
    page.driver.execute_script("document.querySelector('[data-key=\"7\"]').focus()")
    ActionChains(page.driver, duration=0).send_keys(PIN + Keys.ENTER).perform()
    check("digits and Enter of the keyboard are those of the keypad", page.outcome("Approved"))
    page.idle()


def motion(address):
    page = Page(motion=False)
    try:
        page.driver.get(address)
        page.idle()
        page.start("login")
        page.shows("confirmation wanted")
        lit = "return document.getElementById('led').classList.contains('lit')"
        states = {page.driver.execute_script(lit) for _ in range(30) if not time.sleep(0.05)}
        check("a user who wants no motion sees no blinking", states == {True})
        page.click("#cancel")
        page.outcome("Canceled")
        quiet(page, "a page without motion")
    finally:
        page.driver.quit()


def quiet(page, name, *expected):
    errors = page.errors(*expected)
    check(f"no error in the console: {name}", not errors, "; ".join(errors)[:600])
    outside = page.stays_on_loopback()
    check(f"no request leaves the loopback interface: {name}", not outside, " ".join(outside))


def looks(address):
    for width, height, dark in [(360, 780, False), (360, 780, True), (1920, 1080, False), (1920, 1080, True)]:
        name = f"{width}-{'dark' if dark else 'light'}"
        page = Page(width, height, dark)
        try:
            page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
            page.driver.get(address)
            page.idle()
            until(lambda: page.text("#timeline").count("LED:") > 3)
            check(f"nothing is cut off at {name}", page.driver.execute_script(
                f"return document.documentElement.scrollWidth <= {width}"))
            quiet(page, name)
            check(f"says that the board is simulated at {name}", "Simulated board" in page.find("header").text)
            page.accessible(name)
            page.picture(name)
        finally:
            page.driver.quit()


began = time.monotonic()
bench = subprocess.Popen([program, "--page", folder, "--clock-library", wall_clock], stdout=subprocess.PIPE, text=True)
browser = None
try:
    line = bench.stdout.readline()
    address = line.split()[-1] if line else sys.exit("the bench has not started")
    started = time.monotonic() - began
    browser = Page()
    began = time.monotonic()
    browser.driver.get(address)
    check("the page shows an idle token", browser.idle())
    print(f"  from the command to the address: {started:.1f} s, and to a usable page: "
          f"{started + time.monotonic() - began:.1f} s, without the start of the browser", flush=True)
    check("the token of the address is gone from it", browser.driver.current_url.count("#") == 0)
    strangers(browser, address)
    approvals(browser)
    keyboard(browser)
    holds_that_are_none(browser)
    faults(browser, address)
    accounts.play(browser)
    print(f"  LED changes reach the page within {browser.text('#latency')}", flush=True)
    p95 = int(browser.driver.execute_script("return document.getElementById('latency').dataset.p95 ?? 9999"))
    check("LED changes reach the page within 50 ms at p95", p95 <= 50, f"{p95} ms")
    quiet(browser, "the first window", "ERR_INTERNET_DISCONNECTED", "409 (Conflict)")
    motion(address)
    looks(address)
finally:
    if browser:
        browser.driver.quit()
    bench.terminate()
    bench.wait(20)
attached.play()
ending.play()
print(f"{len(passed) + len(failed)} checks, {len(failed)} failed")
sys.exit(1 if failed else 0)
