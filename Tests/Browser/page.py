# SPDX-License-Identifier: Apache-2.0
"""A page of the bench in headless Chromium, and the checks that are counted."""
import json
import os
import sys
import time

from axe_selenium_python import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import Select

PIN = "13589"
program, folder, pictures, wall_clock = sys.argv[1:5]
os.makedirs(pictures, exist_ok=True)
passed, failed = [], []


def check(what, is_right, note=""):
    print(f"  {'ok  ' if is_right else 'FAIL'} {what}{f': {note}' if note and not is_right else ''}", flush=True)
    if is_right:
        passed.append(what)
    else:
        failed.append(what)


def until(condition, limit=10):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.03)
    return None


class Page:
    def __init__(self, width=1480, height=1000, dark=False, motion=True):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        # As root, Chromium has no sandbox of its own; it opens only the bench.
        for argument in ["--headless=new", "--no-sandbox", f"--window-size={width},{height}", "--disable-background-networking",
                         "--disable-component-update", "--no-first-run", "--autoplay-policy=no-user-gesture-required"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # The driver by its path, so that nothing is looked for on the network.
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_page_load_timeout(20)
        features = [("prefers-color-scheme", "dark")] * dark + [("prefers-reduced-motion", "reduce")] * (not motion)
        if features:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": name, "value": value} for name, value in features]})

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)

    def click(self, selector):
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        self.find(selector).click()

    def shows(self, meaning, limit=10):
        return until(lambda: self.text("#meaning") == meaning, limit) is not None

    def asks(self, meaning, limit=10):
        """The LED asks, and a press that begins now is not too early."""
        shown = self.shows(meaning, limit)
        time.sleep(0.7)
        return shown

    def outcome(self, title, limit=10):
        return until(lambda: self.text("#outcome-title") == title, limit) is not None

    def start(self, kind):
        self.click(f"[data-type={kind}]")
        return self.outcome("Waiting for the token")

    def hold(self, seconds, selector="#approve", picture=None):
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", self.find(selector))
        ActionChains(self.driver, duration=0).click_and_hold(self.find(selector)).perform()
        time.sleep(seconds)
        if picture:
            self.picture(picture)
        ActionChains(self.driver, duration=0).release().perform()

    def type(self, digits):
        for digit in digits:
            self.click(f"[data-key='{digit}']")
        self.click("[data-key=enter]")

    def select(self, user):
        Select(self.find("#which")).select_by_visible_text(user)

    def open(self, selector):
        """Opens a part of the page."""
        if not self.find(selector).get_property("open"):
            self.click(f"{selector} > summary")

    def says(self, selector, words, limit=10):
        return until(lambda: words in self.text(selector), limit) is not None

    def idle(self, limit=20):
        return self.shows("idle, connected", limit)

    def picture(self, name):
        self.driver.save_screenshot(os.path.join(pictures, name + ".png"))

    def accessible(self, name):
        axe = Axe(self.driver)
        axe.inject()
        found = axe.run()["violations"]
        check(f"axe finds nothing: {name}", not found, "; ".join(
            f"{v['id']}: {v['nodes'][0]['target']} {v['nodes'][0].get('failureSummary', '')}" for v in found)[:900])

    def stays_on_loopback(self):
        addresses = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                addresses.add(message["params"]["request"]["url"])
        return [a for a in addresses if not a.startswith(("http://127.0.0.1:", "data:", "blob:", "chrome:", "devtools:"))]

    def errors(self, *expected):
        return [e["message"] for e in self.driver.get_log("browser")
                if e["level"] == "SEVERE" and not any(text in e["message"] for text in expected)]
