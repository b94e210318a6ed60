// SPDX-License-Identifier: Apache-2.0
// The sequence of each request across portal, server and token.
import { byID } from "./api.js";
import { lamps } from "./token.js";
import { areSeveral, user } from "./tokens.js";

const list = byID("timeline");
const mostRequests = 20;
/** Of one request. The bench's own take about 20; what other programs do at a token is shown, too. */
const mostSteps = 200;
/** transaction: { steps, began } */
const requests = new Map();
/** The newest of each token; what is about none belongs to the newest of all. */
const newest = new Map();

function group(title, note, isAttack, at, token) {
  if (newest.size === 0) list.replaceChildren();
  const card = element("div", "card request" + (isAttack ? " attack" : ""));
  const heading = element("h3", "", title);
  if (areSeveral() && token !== null) note = note || user(token);
  heading.append(element("small", "", note));
  const steps = element("ol", "steps");
  const again = element("button", "replay", "Replay slowly");
  again.type = "button";
  again.setAttribute("aria-label", `Replay slowly: ${title}`);
  again.addEventListener("click", () => replay(steps, again));
  heading.append(again);
  card.append(heading, steps);
  list.prepend(card);
  while (list.children.length > mostRequests) list.lastChild.remove();
  for (const [transaction, place] of requests) if (!place.steps.isConnected) requests.delete(transaction);
  const made = { steps, began: at };
  newest.set(token, made).set(null, made);
  return made;
}

/** Shows the steps again, at a quarter of their speed; no pause is longer than 3 s. */
async function replay(steps, button) {
  button.disabled = true;
  const items = [...steps.children].sort((one, other) => one.dataset.at - other.dataset.at);
  for (const item of items) item.hidden = true;
  let former = items[0]?.dataset.at;
  for (const item of items) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(3000, (item.dataset.at - former) * 4)));
    former = item.dataset.at;
    item.hidden = false;
  }
  button.disabled = false;
}

function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * One step. `course`: "p>s" is an arrow from portal to server, "t" a dot at the token.
 * `details`: what was sent, shown when it is opened.
 */
function step(place, at, course, text, { details, quality, color } = {}) {
  const item = element("li");
  item.dataset.at = at;
  const time = element("time", "", `+${(Math.max(0, at - place.began) / 1000).toFixed(3)} s`);
  const lanes = element("span", "lanes");
  lanes.setAttribute("aria-hidden", "true");
  const [from, to] = course.split(">");
  const names = { p: "portal", s: "server", t: "token" };
  const who = element("span", "unseen", to ? `${names[from]} to ${names[to]}: ` : `${names[from]}: `);
  if (to) {
    const isRight = "pst".indexOf(from) < "pst".indexOf(to);
    lanes.append(element("span", `arrow ${isRight ? from + to : to + from} ${isRight ? "right" : "left"}`));
  } else {
    const dot = element("span", `dot ${from}`);
    if (color) dot.style.setProperty("--lamp", color);
    lanes.append(dot);
  }
  const what = element("div", `what ${quality ?? ""}`);
  if (details) {
    const more = element("details");
    const summary = element("summary", "");
    summary.append(who, text);
    more.append(summary);
    const sent = element("pre", "", typeof details === "string" ? details : JSON.stringify(details, null, 1));
    sent.tabIndex = 0;
    sent.setAttribute("role", "region");
    sent.setAttribute("aria-label", "what was sent");
    more.append(sent);
    what.append(more);
  } else {
    what.append(who, text);
  }
  item.append(time, lanes, what);
  place.steps.append(item);
  if (place.steps.children.length > mostSteps) place.steps.firstChild.remove();
}

/** Where an entry without a request belongs: to the newest request, if it is still in the list. */
function anywhere(at, token) {
  const place = newest.get(token);
  return place?.steps.isConnected ? place : group(place ? "Later" : "Start", "", false, at, token);
}
const of = (transaction, at, token) => requests.get(transaction) ?? anywhere(at, token);
/** The time of a token, unless its clock is wrong. */
const trusted = (time, at) => Math.abs(time - at) < 10_000 ? time : at;
const milliseconds = (entry) => `${(entry.duration_us / 1000).toFixed(1)} ms`;

const handlers = {
  portal(entry, at, token) {
    const sent = { form: Object.fromEntries(entry.form ?? []), status: entry.status, answer: entry.answer ?? entry.error };
    if (entry.action === "cancel") {
      return step(of(entry.transaction, at, token), at, "p>s", `DELETE transaction · ${entry.status} · ${milliseconds(entry)}`, { details: sent });
    }
    const isAttack = entry.by === "attacker";
    const began = at - Math.round(entry.duration_us / 1000);
    const place = group(entry.message, isAttack ? `an attacker, with ${user(token)}'s name` : "", isAttack, began, token);
    if (entry.transaction) requests.set(entry.transaction, place);
    const type = entry.form?.find(([name]) => name === "type")?.[1] ?? "";
    step(place, at, "p>s", `${entry.method} authenticate/user · ${type} · ${entry.status ?? entry.error} · ${milliseconds(entry)}`,
      { details: sent, quality: entry.transaction ? "" : "bad" });
  },
  result(entry, at, token) {
    const { answer } = entry;
    const reason = answer.not_authenticated_reason?.reason;
    const text = answer.is_authenticated ? "reads: approved" : reason ? `reads: ${reason}`
      : answer.used_authentication_attempts ? `reads: open, ${answer.used_authentication_attempts} PIN attempts used` : "reads: open";
    step(of(entry.transaction, at, token), at, "s>p", `${text} · ${milliseconds(entry)}`,
      { details: answer, quality: answer.is_authenticated ? "good" : reason ? "bad" : "" });
  },
  callback(entry, at, token) { step(of(entry.transaction_id, at, token), at, "s>p", "callback: the request has ended", { details: entry }); },
  token(event, at, token) {
    const words = tokenWords[event.event];
    if (!words) return;
    const [course, text, quality] = words(event);
    step(event.transaction ? of(event.transaction, at, token) : anywhere(at, token), trusted(event.at_ms, at), course, text, { details: event, quality });
  },
  led(state, at, token) {
    step(anywhere(at, token), trusted(state.at_ms, at), "t", `LED: ${state.meaning}`, { color: lamps[state.color] });
  },
  user(entry, at, token) { step(anywhere(at, token), at, "t", userWords(entry), { quality: entry.ending === "canceled" ? "bad" : "" }); },
  audit(entry, at, token) {
    step(of(entry.transaction, at, token), at, "t", `audit chain: ${entry.lines.length} lines`, { details: entry.lines.map(
      (line) => [line.sequence, line.time, line.kind, line.detail].join("  ")).join("\n") });
  },
  fault(entry, at, token) { step(anywhere(at, token), at, entry.fault.startsWith("server") ? "s" : "t", faults[entry.fault], { quality: "bad" }); },
};

const failure = (event) => event.failure?.reason ?? "";
const tokenWords = {
  challenge: (e) => ["s>t", `${e.failure ? failure(e) + "; " : ""}asks for: ${kinds[e.kind] ?? e.kind}`, e.failure ? "bad" : ""],
  "request-handled": (e) => ["t>s", `${e.decision === "accept" ? "approved" : e.denial_reason === "not-me" ? "denied: not me" : "denied"}, confirmed by the server`, e.decision === "accept" ? "good" : "bad"],
  "request-failed": (e) => ["s>t", `ended: ${failure(e)}`, "bad"],
  "request-unconfirmed": (e) => ["t>s", `answer sent, not confirmed yet: ${failure(e)}`, "bad"],
  connected: () => ["t>s", "connected", "good"],
  disconnected: (e) => ["t", `not connected: ${failure(e)}`, "bad"],
  stopped: (e) => ["t", `stopped: ${failure(e)}`, "bad"],
  "pin-change-started": () => ["t", "change of the PIN begins"],
  "pin-changed": () => ["t>s", "PIN changed", "good"],
  "pin-change-failed": (e) => ["t", `PIN not changed: ${failure(e)}`, "bad"],
  "authentication-started": () => ["t", "a login begins"],
  authenticated: () => ["t>s", "logged in", "good"],
  "authentication-failed": (e) => ["t", `not logged in: ${failure(e)}`, "bad"],
  "registration-started": (e) => ["t", `registration of "${e.authenticator}" begins`],
  "authenticator-registered": (e) => ["t>s", `"${e.authenticator}" is registered`, "good"],
  "registration-failed": (e) => ["t", `"${e.authenticator}" is not registered: ${failure(e)}`, "bad"],
  "deregistration-started": (e) => ["t", `deregistration of "${e.authenticator}" begins`],
  "authenticator-deregistered": (e) => ["t>s", `"${e.authenticator}" is deregistered`, "good"],
  "deregistration-failed": (e) => ["t", `"${e.authenticator}" is not deregistered: ${failure(e)}`, "bad"],
  "authenticator-revoked": (e) => ["s>t", `the token server has deregistered "${e.authenticator}"`, "bad"],
  "must-enroll": (e) => ["t", `must be enrolled: ${failure(e)}`, "bad"],
};
const kinds = {
  confirmation: "a hold", pin: "the PIN", choice: "a choice", "read-back": "the number", "denial-only": "a denial",
  biometric: "a finger", custom: "the authenticator",
};
const faults = {
  "server-away": "the token server is stopped", "server-back": "the token server is started",
  "power-loss": "the token loses its power (kill -9) and starts again",
  "network-away": "the token's network process is killed", "network-back": "the token's network process is started",
  "clock-wrong": "the token loses its power and starts again in 1970, as without a real-time clock",
  "clock-right": "the token loses its power and starts again with the right clock",
};

function userWords(entry) {
  if (entry.reader) return `the user ${entry.reader}${entry.ignored ? `: ignored, ${entry.ignored}` : ""}`;
  if (entry.keys) return `the user types ${entry.keys} key${entry.keys === 1 ? "" : "s"}`;
  const held = `${(entry.held_ms / 1000).toFixed(2)} s`;
  if (entry.ending === "canceled") return "a press is canceled: it answers nothing";
  return entry.button === "deny" ? "the user presses the deny button" : `the user holds the button for ${held}`;
}

export function addStep(kind, value, at, token) { if (value) handlers[kind]?.(value, at, token); }
