// SPDX-License-Identifier: Apache-2.0
// A button that is really held: the token sees it go down and up. While it is down the page says so all the time; what
// ends a press otherwise than by its release (lost focus, a hidden tab, a lost connection) cancels it.
import { byID, call, complain } from "./api.js";
import { selected } from "./tokens.js";

const BEAT = 100;

const pointer = (event) => `pointer ${event.pointerId}`;
const key = (event) => `key ${event.code}`;

export class HeldButton {
  #element; #place; #name; #report;
  /**
   * The press of the user: what holds the button, when it began, and the number that the bench gave it. Null while the
   * button is up. Only what holds the button releases it.
   */
  #press = null;
  /** When a press approves and when it reports "not me", in milliseconds. */
  thresholds = [800, 6000];

  /** `report` gets a text about the press, or null when it is over. */
  constructor(element, report) {
    this.#element = element;
    this.#place = element.parentElement;
    this.#name = this.#place.dataset.button;
    this.#report = report;
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      if (element.hasPointerCapture(event.pointerId)) element.releasePointerCapture(event.pointerId);
      this.down(pointer(event), event.timeStamp);
    });
    element.addEventListener("pointerup", (event) => this.up(pointer(event), event.timeStamp));
    for (const end of ["pointerleave", "pointercancel"]) {
      element.addEventListener(end, (event) => { if (this.isDownBy(pointer(event))) this.cancel(); });
    }
    element.addEventListener("blur", () => this.cancel());
    element.addEventListener("contextmenu", (event) => event.preventDefault());
    element.addEventListener("keydown", (event) => {
      if (event.code !== "Space" && event.code !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) this.down(key(event), event.timeStamp);
    });
    element.addEventListener("keyup", (event) => {
      if (event.code !== "Space" && event.code !== "Enter") return;
      event.preventDefault();
      this.up(key(event), event.timeStamp);
    });
    // Screen readers activate a button without pressing it.
    element.addEventListener("click", (event) => {
      if (event.detail === 0) this.#report("A click is no press: hold the button, such as with the space bar.");
    });
    addEventListener("blur", () => this.cancel());
    addEventListener("pagehide", () => this.cancel());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.cancel(); });
  }

  /** `by`: the pointer, the key, or "body"; `at`: the time of the event, not that of a page that was busy. */
  down(by, at) {
    if (this.#press || this.#element.disabled) return;
    const press = { by, token: selected(), began: at, number: null, isOver: false };
    this.#press = press;
    this.#element.classList.add("down");
    press.started = call("button/press", { token: press.token, button: this.#name }).then((answer) => {
      press.number = answer.press;
      return answer;
    });
    press.started.then((answer) => this.#beat(press, answer), (error) => {
      complain(error);
      this.#end(press);
    });
    requestAnimationFrame(() => this.#draw(press));
  }

  up(by, at) {
    if (!this.isDownBy(by)) return;
    const press = this.#press;
    const held = at - press.began;
    this.#end(press);
    press.started.then(() => call("button/release", { token: press.token, press: press.number, held_ms: Math.round(held) }))
      .then((answer) => {
        if (answer.ending === "canceled") this.#report("The press was canceled: the connection was too slow.");
      }, complain);
  }

  isDownBy(what) { return this.#press?.by === what; }

  /** Ends the press as one that is no gesture. */
  cancel() {
    const press = this.#press;
    if (!press) return;
    this.#end(press);
    this.#report("The press was canceled. It answers nothing.");
    press.started.then(() => call("button/cancel", { token: press.token, press: press.number }, { keepalive: true })).catch(() => {});
  }

  #end(press) {
    press.isOver = true;
    if (this.#press === press) this.#press = null;
    this.#element.classList.remove("down");
    this.#place.style.setProperty("--p", "0");
    delete this.#place.dataset.stage;
    this.#report(null);
  }

  async #beat(press, answer) {
    if (answer.ignored && !press.isOver) this.#report(`This press is ignored: ${answer.ignored}.`);
    while (!press.isOver) {
      // A tab that was put to sleep says nothing for a while: the bench has canceled the press then.
      const { down } = await call("button/beat", { token: press.token, press: press.number }).catch(() => ({ down: false }));
      if (!down && !press.isOver) {
        this.#end(press);
        this.#report("The press was canceled. It answers nothing.");
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, BEAT));
    }
  }

  /** The ring: a third of it until a press approves, the rest until it reports "not me". */
  #draw(press) {
    if (press.isOver) return;
    const held = performance.now() - press.began;
    const [accept, notMe] = this.thresholds;
    const part = held < accept ? held / accept / 3 : 1 / 3 + Math.min(1, (held - accept) / (notMe - accept)) * 2 / 3;
    this.#place.style.setProperty("--p", part.toFixed(4));
    const stage = held >= notMe ? 2 : held >= accept ? 1 : 0;
    if (this.#place.dataset.stage !== String(stage)) {
      this.#place.dataset.stage = stage;
      if (this.#name === "approve" && stage > 0) {
        this.#report(stage === 1 ? `${accept / 1000} s: long enough to approve` : `${notMe / 1000} s: not me`);
      }
    }
    requestAnimationFrame(() => this.#draw(press));
  }
}

/** The space bar is the button also when nothing has the focus. It is no longer when something gets it. */
export function holdBySpaceBar(button) {
  document.addEventListener("keydown", (event) => {
    if (event.code !== "Space" || event.target !== document.body) return;
    event.preventDefault();
    if (!event.repeat) button.down("body", event.timeStamp);
  });
  document.addEventListener("keyup", (event) => {
    if (event.code === "Space") button.up("body", event.timeStamp);
  });
  document.addEventListener("focusin", () => { if (button.isDownBy("body")) button.cancel(); });
}

export const holdText = byID("hold-text");
