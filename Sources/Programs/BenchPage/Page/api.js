// SPDX-License-Identifier: Apache-2.0
// Calls of the bench, and the feed of what happens.

export class CallError extends Error {}

/** The secret of this origin. Cookies go to other ports, too. */
const key = () => localStorage.getItem("bench-key") ?? "";

/** Sends one call about a token; throws `CallError` with the bench's text if it is refused. */
export async function call(path, body = {}, options = {}) {
  const token = Number(document.getElementById("which").value) || 0;
  let response;
  try {
    response = await fetch("/" + path, {
      method: "POST", headers: { "Content-Type": "application/json", "Bench-Key": key() }, body: JSON.stringify({ token, ...body }), ...options,
    });
  } catch {
    throw new CallError("the bench does not answer");
  }
  if (response.status === 204) return {};
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new CallError(answer.error || `refused with ${response.status}`);
  return answer;
}

/** Whether the address has a token. */
export const hasSessionToken = () => /^#[\w-]{32}$/.test(location.hash);

/** Exchanges the token in the address, if there is one, for a cookie and a key, and removes it from the address. */
export async function openSession() {
  if (!hasSessionToken()) return;
  localStorage.setItem("bench-key", (await call("session", { token: location.hash.slice(1) })).key);
  history.replaceState(null, "", "/");
}

/**
 * Passes each entry of the feed to `take`, and whether the bench answers to `connected`. A hidden page has no connection:
 * browsers make only six to one server.
 */
export function follow(take, connected) {
  let feed = null;
  function open() {
    feed?.close();
    if (document.hidden) return connected(false);
    const own = feed = new EventSource(`/feed?key=${encodeURIComponent(key())}`);
    own.onopen = () => connected(true);
    own.onerror = () => {
      connected(false);
      // The browser connects again by itself, unless the bench refused.
      if (own.readyState === EventSource.CLOSED) setTimeout(() => { if (own === feed) open(); }, 2000);
    };
    own.onmessage = (message) => take(JSON.parse(message.data), Number(message.lastEventId));
    // States that were there before this connection have no number.
    own.addEventListener("latest", (message) => take(JSON.parse(message.data), 0));
  }
  document.addEventListener("visibilitychange", open);
  open();
}

const notice = document.getElementById("notice");
let hiding;

/** Shows why something was refused. */
export function complain(error) {
  notice.textContent = error instanceof CallError ? error.message : String(error);
  notice.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { notice.hidden = true; }, 8000);
}

/** Runs what a control does, and shows why it failed. */
export const guarded = (action) => async (...values) => {
  try { return await action(...values); } catch (error) { complain(error); }
};

export const byID = (id) => document.getElementById(id);

/** Sets a text only if it is another, so that a screen reader says it once. */
export function setText(id, text) {
  const element = byID(id);
  if (element.textContent !== text) element.textContent = text;
}
