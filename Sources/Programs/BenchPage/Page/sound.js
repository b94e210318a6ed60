// SPDX-License-Identifier: Apache-2.0
// The buzzer, silent until the user wants to hear it.

let context = null;
let gain = null;

/** Must be called by a user's action the first time: browsers allow sound only then. */
export function setAudible(isAudible) {
  if (!isAudible) {
    context?.close();
    context = gain = null;
    return;
  }
  context = new AudioContext();
  gain = context.createGain();
  gain.gain.value = 0;
  const tone = context.createOscillator();
  tone.type = "square";
  tone.frequency.value = 2300;
  tone.connect(gain).connect(context.destination);
  tone.start();
}

export function sound(isOn) { gain?.gain.setTargetAtTime(isOn ? 0.06 : 0, context.currentTime, 0.002); }
