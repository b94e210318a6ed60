// SPDX-License-Identifier: Apache-2.0
// The simulated board: what it shows, and what a user does with it.
import { byID, call, complain, guarded, setText } from "./api.js";
import { HeldButton, holdBySpaceBar, holdText } from "./button.js";
import { setAudible, sound } from "./sound.js";

/** The lamp's colors on a screen, by the names that the token uses. */
export const lamps = {
  amber: "#ffb000", blue: "#3b82ff", green: "#22d35e", magenta: "#ff3ecb", orange: "#ff7a1a", red: "#ff3b30",
  violet: "#9b5cff", white: "#f5f7ff", "dim green": "#1fae4b", "dim red": "#d0302a",
};

const restful = matchMedia("(prefers-reduced-motion: reduce)");
const led = byID("led");
const idleText = holdText.textContent;
/** A screen reader says what happened, but not the hint that follows. */
const report = (text) => {
  holdText.ariaLive = text ? "polite" : "off";
  holdText.textContent = text ?? idleText;
};
const buttons = [new HeldButton(byID("approve"), report), new HeldButton(byID("deny"), report)];
holdBySpaceBar(buttons[0]);

const delays = [];
let past = 0;

/** `isPresent`: whether the entry has just happened. */
export function showBoard(state, isPresent) {
  if (!state) {
    led.className = "led";
    setText("meaning", "off: no power");
    setText("led-color", "");
    setText("pattern", "the LED is dark");
    setText("advice", "The token starts again, or the bench has ended.");
    sound(false);
    return;
  }
  const { led: shown } = state;
  // A user who wants no motion sees the color, and reads the pattern.
  const isLit = state.chip_connected && (shown.lit || restful.matches);
  led.className = `led${isLit ? " lit" : ""}${shown.color.startsWith("dim") ? " dim" : ""}`;
  led.style.setProperty("--lamp", lamps[shown.color] ?? "#fff");
  setText("meaning", state.chip_connected ? shown.meaning : "unplugged: the LED is dark");
  setText("led-color", `${shown.color}, `);
  setText("pattern", state.pattern);
  setText("advice", state.chip_connected ? state.advice : "Plug the chip in. Until then nothing can be approved.");
  setText("buzzer", state.sounding ? "sounds" : "silent");
  sound(state.sounding);
  byID("chip").checked = state.chip_connected;
  byID("keypad-plug").checked = state.keypad_connected;
  document.querySelector(".chip").classList.toggle("off", !state.chip_connected);
  byID("keypad").classList.toggle("off", !state.keypad_connected);
  for (const key of byID("keypad").children) key.disabled = !state.keypad_connected;
  for (const button of buttons) button.thresholds = [state.accept_hold_ms, state.report_hold_ms];
  // A token whose clock is wrong says nothing about when.
  const delay = Date.now() - state.at_ms;
  if (isPresent && Math.abs(delay) < 10_000) measure(delay);
}

/** The first state is not a change: it may be old. */
function measure(delay) {
  if (past++ === 0) return;
  delays.push(delay);
  if (delays.length > 500) delays.shift();
  const sorted = [...delays].sort((one, other) => one - other);
  const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1];
  byID("latency").textContent = `${p95} ms (95 % of ${delays.length})`;
  byID("latency").dataset.p95 = p95;
  byID("latency").dataset.changes = delays.length;
}

/** One after the other: of requests at the same time, one could overtake another. */
let presses = Promise.resolve();
const press = guarded((keys) => (presses = presses.catch(() => {}).then(() => call("keypad", { keys }))));
byID("keypad").addEventListener("click", (event) => {
  const key = event.target.dataset.key;
  if (key) press([key]);
});
byID("keypad").addEventListener("keydown", (event) => {
  // The space bar presses the key that has the focus; Enter, too, unless that is a digit, after which it submits.
  if (event.key === "Enter" && !event.repeat && !/^[0-9]$/.test(event.target.dataset.key)) return;
  const key = /^[0-9]$/.test(event.key) ? event.key
    : { Backspace: "delete", Enter: "enter", Escape: "escape" }[event.key] ?? null;
  if (!key || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  if (!event.repeat) press([key]);
});

byID("sound").addEventListener("change", (event) => setAudible(event.target.checked));
/** A switch that shows again what is so if it could not be changed. */
function onSwitch(id, change) {
  byID(id).addEventListener("change", async ({ target }) => {
    const isOn = target.checked;
    try { await change(isOn); } catch (error) {
      target.checked = !isOn;
      complain(error);
    }
  });
}
onSwitch("chip", (isOn) => call("chip", { connected: isOn }));
onSwitch("keypad-plug", (isOn) => call("keypad", { keys: [isOn ? "plug-in" : "unplug"] }));
for (const id of ["server-away", "network-away", "clock-wrong"]) {
  const opposite = { "server-away": "server-back", "network-away": "network-back", "clock-wrong": "clock-right" }[id];
  onSwitch(id, (isOn) => call("fault", { fault: isOn ? id : opposite }));
}
for (const button of document.querySelectorAll("[data-fault]")) {
  button.addEventListener("click", guarded(() => call("fault", { fault: button.dataset.fault })));
}
for (const button of document.querySelectorAll("[data-act]")) {
  button.addEventListener("click", guarded(async () => {
    const { ignored } = await call("reader", { act: button.dataset.act });
    report(ignored ? `Ignored: ${ignored}.` : null);
  }));
}

export function showPrograms(programs, place) {
  byID("pin").textContent = programs.pin ?? "";
  byID("pin-hint").hidden = !programs.pin;
  byID("server-away").checked = !programs.server;
  byID("server-away").closest("label").hidden = byID("make-uri").hidden = !programs.own_server;
  byID("readers").hidden = !programs.own_server || !programs.own_token;
  for (const button of document.querySelectorAll("[data-command]")) button.disabled = place.waits || !programs.ready;
}

/** What belongs to the selected token. Only what the bench has started can be made to fail. */
export function showPlace(place) {
  byID("network-away").checked = !place.network;
  byID("clock-wrong").checked = place.clock_wrong;
  byID("network-away").closest("label").hidden = document.querySelector("[data-fault=power-loss]").hidden = !place.own;
  byID("clock-wrong").closest("label").hidden = !place.clock;
  if (!place.token) showBoard(null, false);
}
