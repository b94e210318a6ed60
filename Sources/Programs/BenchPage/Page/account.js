// SPDX-License-Identifier: Apache-2.0
// The account of the selected token: enrollment, PIN, authenticators.
import { byID, call, CallError, guarded } from "./api.js";
import { selected } from "./tokens.js";

byID("make-uri").addEventListener("click", guarded(async () => {
  byID("uri").value = (await call("account/uri")).uri;
}));
for (const button of document.querySelectorAll("[data-command]")) {
  button.addEventListener("click", guarded(() => call("account", { command: button.dataset.command, uri: byID("uri").value })));
}

/** The picture in black and white, at most 900 pixels wide and high, as a PNG in Base64. */
async function blackAndWhite(file) {
  const picture = await createImageBitmap(file).catch(() => { throw new CallError("the file is no picture"); });
  const scale = Math.min(1, 900 / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, picture.height].map((side) => Math.max(1, Math.round(side * scale)));
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < pixels.data.length; i += 4) {
    const [red, green, blue] = pixels.data.subarray(i, i + 3);
    pixels.data.fill(red * 0.3 + green * 0.59 + blue * 0.11 < 128 ? 0 : 255, i, i + 3);
  }
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL("image/png").split(",")[1];
}

byID("picture").addEventListener("change", guarded(async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  byID("uri").value = (await call("account/picture", { png: await blackAndWhite(file) })).uri;
  event.target.value = "";
}));

const commandNames = {
  enroll: "The enrollment", "pin-change": "The change of the PIN", forget: "The removal", register: "The registration",
  deregister: "The deregistration", prefer: "The preference",
};

export function showAccount(entry, at, token) {
  if (token !== selected()) return;
  const name = commandNames[entry.command] ?? entry.command;
  byID("account-text").textContent = entry.step === "started" ? `${name} continues at the token.`
    : entry.step === "done" ? `${name} is done.` : `${name} has failed: ${entry.error}`;
  if (entry.command === "enroll" && entry.step === "done") byID("uri").value = "";
  if (entry.step !== "started") showAuthenticators();
}

/** Lists the authenticators while that part of the page is open. */
export async function showAuthenticators() {
  if (!byID("account").open) return;
  const list = byID("authenticators");
  const token = selected();
  try {
    const { authenticators } = await call("account/authenticators", { token });
    const text = JSON.stringify(authenticators);
    // What has not changed stays, with the focus in it.
    if (token !== selected() || text === list.dataset.shown) return;
    list.dataset.shown = text;
    list.replaceChildren(...authenticators.map(item));
  } catch (error) {
    const reason = document.createElement("li");
    reason.textContent = error.message;
    delete list.dataset.shown;
    list.replaceChildren(reason);
  }
}
byID("account").addEventListener("toggle", showAuthenticators);

function item({ identifier, name, registered, preferred, supported }) {
  const item = document.createElement("li");
  const text = document.createElement("span");
  const state = registered ? "registered" : supported ? "not registered" : "cannot be used now";
  text.textContent = `${name}: ${state}${preferred ? ", preferred for logins" : ""}`;
  item.append(text);
  const acts = [];
  if (!registered && supported) acts.push(["register", "Register"]);
  if (registered && identifier !== "pin") acts.push(["deregister", "Deregister"]);
  if (registered && !preferred) acts.push(["prefer", "Prefer"]);
  for (const [command, word] of acts) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = word;
    button.setAttribute("aria-label", `${word}: ${name}`);
    button.dataset.authenticator = `${command} ${identifier}`;
    button.addEventListener("click", guarded(() => call("account", { command, authenticator: identifier })));
    item.append(button);
  }
  return item;
}
