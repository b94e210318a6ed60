// SPDX-License-Identifier: Apache-2.0
// Which of the tokens, with its user, the page shows.
import { byID } from "./api.js";

const which = byID("which");
const listeners = [];
let users = ["alice"];

export const selected = () => Number(which.value) || 0;
export const user = (token = selected()) => users[token] ?? "";
export const areSeveral = () => users.length > 1;

/** `listener` is called when the user has selected another token. */
export function onSelection(listener) { listeners.push(listener); }

which.addEventListener("change", () => {
  showUser();
  for (const listener of listeners) listener();
});

export function showUsers(all) {
  if (all.join() === users.join() && which.options.length === all.length) return;
  users = all;
  const former = selected();
  which.replaceChildren(...all.map((name, index) => new Option(name, index)));
  which.value = String(Math.min(former, all.length - 1));
  byID("which-token").hidden = !areSeveral();
  showUser();
}

function showUser() {
  for (const element of document.querySelectorAll("[data-user]")) element.textContent = user();
}
