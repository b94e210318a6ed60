// SPDX-License-Identifier: Apache-2.0
import { showAccount, showAuthenticators } from "./account.js";
import { byID, complain, follow, hasSessionToken, openSession } from "./api.js";
import { addStep } from "./timeline.js";
import { onSelection, selected, showUsers } from "./tokens.js";
import { showCallback, showExchange, showPortal, showResult, showTypes } from "./portal.js";
import { showBoard, showPlace, showPrograms } from "./token.js";

/** The latest states: of the bench, and by token of the boards and of what belongs to them. */
let programs = null;
const boards = new Map();
const places = new Map();
/** The number of the last entry, and the bench that counts them. */
let last = 0;
let run = null;

const views = {
  programs(value) {
    // Another bench at the same address: nothing on this page is of it.
    if (run !== null && run !== value.run) return location.reload();
    run = value.run;
    programs = value;
    showUsers(value.users);
    showAll();
  },
  place(value, at, token) {
    places.set(token, value);
    if (token === selected()) showAll();
  },
  portal: showExchange, result: showResult, callback: showCallback, account: showAccount,
};

function showAll() {
  const place = places.get(selected());
  if (!programs || !place) return;
  showPrograms(programs, place);
  showTypes(place.types);
  showPlace(place);
}

function take({ kind, value, at_ms, token }, number) {
  if (["board", "programs", "place"].includes(kind)) return takeState(kind, value, at_ms, token, number);
  if (number <= last) return;
  last = number;
  views[kind]?.(value, at_ms, token);
  addStep(kind, value, at_ms, token);
}

/** The latest states are sent first, at each connection, without a number. */
function takeState(kind, value, at_ms, token, number) {
  if (kind !== "board") return views[kind](value, at_ms, token);
  boards.set(token, value);
  if (token === selected()) showBoard(value, number > 0);
}

onSelection(() => {
  showBoard(boards.get(selected()) ?? null, false);
  showAll();
  showPortal();
  showAuthenticators();
});

function connected(isConnected) {
  byID("connection").textContent = isConnected ? "connected to the bench" : "the bench does not answer";
  document.documentElement.dataset.connected = isConnected;
  if (!isConnected) showBoard(null, false);
}

// A new address in the same tab only changes the part behind the "#".
addEventListener("hashchange", () => { if (hasSessionToken()) location.reload(); });
// An address works once; if it was used before, the browser may still have its session.
try { await openSession(); } catch (error) { complain(error); }
follow(take, connected);
