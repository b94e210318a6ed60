# SPDX-License-Identifier: Apache-2.0
"""The account on the page: authenticators, PIN change, removal, enrollment by URI; a wrong clock and a dead process."""
import os
import subprocess
import tempfile

from page import PIN, check, until

NEW_PIN = "80261"


def command(page, name):
    """A command that continues at the token."""
    page.open("#account")
    page.click(f"[data-command={name}]")
    return page.says("#account-text", "continues at the token")


def authenticator(page, act):
    page.open("#account")
    # In one step, because the list is made again when it has changed.
    until(lambda: page.driver.execute_script(
        "const button = document.querySelector(arguments[0]); button?.click(); return button !== null",
        f"[data-authenticator='{act}']"))
    return page.says("#account-text", "continues at the token")


def done(page, what, limit=15):
    return page.says("#account-text", f"{what} is done", limit)


def play(page):
    authenticators(page)
    readers(page)
    deregistrations(page)
    pins(page)
    faults(page)
    enrollment(page)


def authenticators(page):
    page.open("#account")
    check("the account lists its PIN", page.says("#authenticators", "PIN: registered, preferred"))
    check("the account lists what it could register", page.says("#authenticators", "Fingerprint: not registered"))
    page.accessible("account")
    # The token server holds requests off for 15 s after "not me".
    check("without a registered finger the PIN is wanted",
          until(lambda: page.start("finger"), 40) is not None and page.asks("PIN wanted"))
    page.type(PIN)
    check("the PIN replaces the finger", page.outcome("Approved") and "the PIN" in page.text("#outcome-text"))
    page.idle()

    check("a registration begins", authenticator(page, "register finger"))
    check("it asks for the PIN", page.asks("PIN wanted"))
    page.type(PIN)
    check("it asks for a hold", page.asks("confirmation wanted"))
    page.hold(1)
    check("it asks for the finger", page.asks("number or other data wanted"))
    page.click("[data-act=finger]")
    check("it asks for the PIN again", page.asks("PIN wanted"))
    page.type(PIN)
    check("the finger is registered", done(page, "The registration"))
    for reader in ["badge", "key"]:
        page.idle()
        authenticator(page, f"register {reader}")
        page.asks("confirmation wanted")
        page.hold(1)
        page.asks("number or other data wanted")
        page.click(f"[data-act={reader}]")
        check(f"the {reader} is registered", done(page, "The registration") and until(
            lambda: page.text("#authenticators").count("registered") - page.text("#authenticators").count("not registered")
            >= {"badge": 3, "key": 4}[reader]) is not None)
    page.idle()
    page.driver.execute_script("arguments[0].scrollIntoView()", page.find("#account"))
    page.picture("authenticators")


def readers(page):
    page.start("finger")
    check("a login asks for the finger", page.asks("number or other data wanted"))
    page.click("[data-act=other-finger]")
    check("another finger approves nothing", page.shows("not one of the choices, or code refused", 5)
          and page.text("#outcome-title") == "Waiting for the token")
    page.asks("number or other data wanted")
    page.picture("finger")
    page.click("[data-act=finger]")
    check("the finger approves", page.outcome("Approved") and "a fingerprint" in page.text("#outcome-text"))
    page.idle()
    page.click("[data-act=finger]")
    check("a finger that nothing asks for is ignored", page.says("#hold-text", "Ignored"))

    page.start("badge")
    check("a login with a badge asks for a hold first", page.asks("confirmation wanted"))
    page.click("[data-act=badge]")
    check("a badge without a hold approves nothing", page.says("#hold-text", "Ignored")
          and page.text("#outcome-title") == "Waiting for the token")
    page.hold(1)
    page.asks("number or other data wanted")
    page.click("[data-act=badge]")
    check("a hold and the badge approve", page.outcome("Approved"))
    page.idle()
    page.start("badge")
    page.asks("confirmation wanted")
    page.hold(1)
    page.asks("number or other data wanted")
    page.click("[data-act=other-badge]")
    page.says("#timeline", "another badge")
    check("another badge approves nothing", page.text("#outcome-title") == "Waiting for the token")
    page.click("#cancel")
    check("the portal withdraws the request", page.outcome("Canceled"))
    page.idle()

    page.start("key")
    check("a login asks for the security key", page.asks("number or other data wanted"))
    page.click("[data-act=key]")
    check("a touch approves", page.outcome("Approved"))
    page.idle()


def deregistrations(page):
    authenticator(page, "prefer finger")
    check("the finger is preferred for logins", page.says("#authenticators", "Fingerprint: registered, preferred"))
    until(lambda: not page.find("[data-command=forget]").get_property("disabled"))
    authenticator(page, "deregister badge")
    check("a deregistration asks for the badge", page.asks("number or other data wanted"))
    page.click("[data-act=badge]")
    check("the badge is deregistered", page.says("#authenticators", "Badge: not registered"))
    page.idle()


def pins(page):
    check("a change of the PIN begins", command(page, "pin-change"))
    page.asks("PIN wanted")
    page.type(PIN)
    page.asks("new PIN wanted")
    page.picture("new-pin")
    page.type(NEW_PIN)
    page.asks("new PIN wanted, a second time")
    page.type(NEW_PIN)
    check("the PIN is changed", done(page, "The change of the PIN"))
    page.idle()
    page.start("payment")
    page.asks("PIN wanted")
    page.type(PIN)
    check("the former PIN is wrong", page.says("#outcome-text", "Wrong PIN"))
    page.asks("PIN wanted")
    page.type(NEW_PIN)
    check("the new PIN approves", page.outcome("Approved"))
    page.idle()


def faults(page):
    page.click("#network-away")
    check("without its network process the token is not connected", page.shows("idle, not connected", 20))
    page.picture("network-away")
    page.click("#network-away")
    check("with it the token connects again", page.idle(90))
    page.click("#clock-wrong")
    check("a token that starts in 1970 says so nowhere but connects", page.says("#timeline", "1970") and page.idle(60))
    page.start("login")
    page.asks("confirmation wanted")
    page.hold(1)
    check("it approves, by the time that the token server has confirmed", page.outcome("Approved"))
    check("its times are not taken for those of the page", "-" not in page.driver.execute_script(
        "return [...document.querySelectorAll('#timeline time')].map((time) => time.textContent).join(' ')"))
    page.picture("clock-wrong")
    page.click("#clock-wrong")
    page.says("#timeline", "right clock")
    check("with the right clock it connects, too", page.idle(60))


def enrollment(page):
    check("a removal begins", command(page, "forget"))
    check("it asks for a very long hold", page.asks("very long hold wanted: it cannot be undone"))
    page.picture("forget")
    page.hold(1)
    check("a short hold removes nothing", page.text("#account-text").endswith("continues at the token."))
    page.asks("very long hold wanted: it cannot be undone")
    page.hold(6.3)
    check("a very long hold removes the account", done(page, "The removal"))
    check("without an account the LED says so", page.shows("must be enrolled (again)", 20))
    page.click("[data-type=login]")
    check("the portal finds no token", page.says("#notice", "has no token"))

    page.open("#account")
    page.click("#make-uri")
    check("the token server makes a URI", until(
        lambda: page.find("#uri").get_property("value").startswith("approvaltoken://")) is not None)
    page.accessible("enrollment")
    uri = page.find("#uri").get_property("value")
    page.driver.execute_script("document.getElementById('uri').value = ''")
    with tempfile.TemporaryDirectory() as folder:
        for name, command_line in [("code.png", ["qrencode", "-s", "6", "-o"]), ("none.png", None)]:
            file = os.path.join(folder, name)
            if command_line:
                subprocess.run([*command_line, file, uri], check=True)
            else:
                page.driver.save_screenshot(file)
            page.find("#picture").send_keys(file)
            if command_line:
                check("a picture with its QR code gives the URI", until(
                    lambda: page.find("#uri").get_property("value") == uri) is not None)
            else:
                check("a picture without one is refused", page.says("#notice", "no QR code"))
    check("an enrollment by URI begins", command(page, "enroll"))
    page.asks("new PIN wanted")
    page.type(PIN)
    page.asks("new PIN wanted, a second time")
    page.type(PIN)
    check("the account is enrolled", done(page, "The enrollment", 30))
    check("the URI, which is used up, is gone", page.find("#uri").get_property("value") == "")
    page.idle(60)
    page.start("login")
    page.asks("confirmation wanted")
    page.hold(1)
    check("the new enrollment approves", page.outcome("Approved"))
    page.idle()
