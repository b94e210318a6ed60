// SPDX-License-Identifier: Apache-2.0
// The portal: what a user starts there, and what it reads about that.
import { byID, call, guarded, setText } from "./api.js";
import { selected, user } from "./tokens.js";

/** By token: the request that the page of the portal is about, and what is shown of it. */
const requests = new Map();
const nothing = {
  state: "none", title: "No request yet", text: "Start a login. The portal then waits for the token.", json: "nothing yet",
  count: "", callback: "No callback yet.",
};

const orders = {
  login: () => ({ message: "Log in to the portal?" }),
  hurry: () => ({ message: "Log in quickly?" }),
  payment() {
    const amount = byID("amount").value.trim();
    return { message: `Pay ${/^[1-9][0-9]{0,3}$/.test(amount) ? amount : "12"} euros?` };
  },
  number() {
    const digits = String(10 + crypto.getRandomValues(new Uint8Array(1))[0] % 90);
    return { message: `Log in with number ${digits}?`, digits };
  },
  finger: () => ({ message: "Log in with a finger?" }),
  badge: () => ({ message: "Log in with a badge?" }),
  key: () => ({ message: "Log in with a security key?" }),
};

const start = guarded((type) => call("portal/start", { type, ...(orders[type]?.() ?? { message: `Approve "${type}"?` }) }));
for (const button of document.querySelectorAll("[data-type]")) {
  button.addEventListener("click", () => start(button.dataset.type));
}
byID("cancel").addEventListener(
  "click", guarded(() => call("portal/cancel", { transaction: requests.get(selected()).transaction })));

/** A token server that was running already has other types, each of which gets a button. */
export function showTypes(types) {
  for (const button of document.querySelectorAll("[data-type]")) {
    button.hidden = button.nextElementSibling.hidden = types.length > 0 && !types.includes(button.dataset.type);
  }
  byID("other-types").replaceChildren(...types.filter((type) => !orders[type]).map((type) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = type;
    button.addEventListener("click", () => start(type));
    return button;
  }));
}

const reasons = {
  not_accepted: "Denied", expired: "Expired", canceled: "Canceled", invalid_answer: "Failed", invalid_request: "Failed",
};

/** Shows the request of the selected token. */
export function showPortal() {
  const request = requests.get(selected()) ?? nothing;
  const isWaiting = request.state === "waiting";
  byID("outcome").dataset.state = request.state;
  setText("outcome-title", request.title);
  setText("outcome-text", request.text);
  byID("cancel").hidden = byID("time").hidden = !isWaiting;
  byID("number").hidden = !isWaiting || !request.digits;
  byID("number").textContent = request.digits ?? "";
  byID("reads-json").textContent = request.json;
  byID("read-count").textContent = request.count;
  byID("callback-text").textContent = request.callback;
  if (isWaiting) requestAnimationFrame(() => drawTime(request));
}

function show(request, state, title, text) {
  Object.assign(request, { state, title, text });
  showPortal();
}

export function showExchange(entry, at, token) {
  addCurl(entry);
  if (entry.action === "cancel") {
    const request = requests.get(token);
    if (entry.transaction === request?.transaction && entry.status === 204) {
      show(request, "over", "Canceled", "The portal has withdrawn the request.");
    }
    return;
  }
  if (entry.by !== "portal") return;
  const request = { ...nothing, token, transaction: entry.transaction, digits: entry.digits, began: at };
  requests.set(token, request);
  if (!entry.transaction) {
    const why = entry.error ?? entry.answer?.error_description ?? `status ${entry.status}`;
    return show(request, "over", "Not started", why);
  }
  request.lasts = entry.answer.time_to_live;
  show(request, "waiting", "Waiting for the token", entry.message);
}

function drawTime(request) {
  if (request !== requests.get(selected()) || request.state !== "waiting") return;
  const left = request.began + request.lasts - Date.now();
  byID("time-bar").style.setProperty("transform", `scaleX(${Math.max(0, left / request.lasts).toFixed(3)})`);
  if (left < -1500) return show(request, "over", "Expired", "Nobody has answered in time.");
  clearTimeout(request.drawing);
  request.drawing = setTimeout(() => drawTime(request), 250);
}

export function showResult(entry, at, token) {
  const request = requests.get(token);
  if (!request || entry.transaction !== request.transaction) return;
  const { answer } = entry;
  request.json = JSON.stringify(answer, null, 1);
  request.count = `${entry.reads === 1 ? "read once" : `read ${entry.reads} times`} so far`;
  if (answer.is_authenticated) {
    const method = methods[answer.authentication_method] ?? "the token";
    return show(request, "approved", "Approved", `${user(token)} has approved this with ${method}.`);
  }
  const reason = answer.not_authenticated_reason;
  if (reason) {
    return show(
      request, reason.reason === "expired" ? "over" : "denied", reasons[reason.reason] ?? "Failed", reason.description);
  }
  if (answer.used_authentication_attempts > 0) {
    // The result does not say how many there are.
    const used = answer.used_authentication_attempts;
    request.text = `Wrong PIN: ${used} attempt${used === 1 ? "" : "s"} used.`;
  }
  showPortal();
}

const methods = {
  push: "the button", push_with_pin: "the PIN", push_with_fingerprint: "a fingerprint",
  push_with_custom_authenticator: "another authenticator",
};

export function showCallback(callback, at) {
  const request = [...requests.values()].find(({ transaction }) => transaction === callback.transaction_id);
  if (!request) return;
  const seconds = ((at - request.began) / 1000).toFixed(2);
  request.callback = `The token server called back after ${seconds} s: the request has ended. It does not say how.`;
  showPortal();
}

/** The last four, in the order of their last use. */
const commands = new Set();

function addCurl(entry) {
  for (const command of [entry.curl, entry.curl_result].filter(Boolean)) {
    commands.delete(command);
    commands.add(command);
  }
  while (commands.size > 4) commands.delete(commands.values().next().value);
  byID("curl").textContent = [...commands].join("\n\n");
}
