// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

extension Indication {
  /// What the user can do while the LED shows this, as sentences.
  /// - Parameters:
  ///   - hold: how long a press approves, as in "0.8 seconds".
  ///   - veryLongHold: how long a press reports "not me".
  package func advice(hold: String, veryLongHold: String) -> String {
    switch self {
    case .idle(let pending) where pending > 0: "Wait: a request is being fetched."
    case .idle: "Nothing to do. Start a login at the portal."
    case .disconnected: "Wait: the token server is not reached, and the token tries again by itself."
    case .anotherRequest: "Watch: a request that you have not seen yet follows."
    case .confirmationWanted:
      "Hold the button for \(hold) and release it: approve. Press it twice: deny. Hold it for \(veryLongHold): not me."
    case .pinWanted:
      "Type the PIN and Enter: approve. Press the button twice: deny. Hold it for \(veryLongHold): not me."
    case .numberWanted:
      "Type the number that the portal shows and Enter, or use what the request asks for. Press the button twice: deny."
    case .noSuchChoice: "That did not fit. Look at the portal and try again."
    case .option: "Count the blinks and compare them with the portal."
    case .optionOffered:
      "Hold the button if that was what the portal shows. Otherwise wait for the next choice, or press it twice: deny."
    case .code: "Type these digits into the portal. Press the button when you have them."
    case .newPINWanted(again: false): "Choose a PIN: type it and Enter."
    case .newPINWanted(again: true): "Type the new PIN a second time and Enter."
    case .entering: "Enter submits. Clear starts again. Escape gives up."
    case .ignored: "Too early, or nothing was asked. Look at the LED first."
    case .releaseToAccept: "Release the button now: approve. Keep holding for \(veryLongHold): not me."
    case .releaseToReport: "Release the button now: deny, and report that it was not you."
    case .veryLongHoldWanted:
      "Hold the button for \(veryLongHold) and release it: it cannot be undone. Press it twice: no."
    case .talkingToServer: "Wait for the token server's confirmation."
    case .confirmed: "Done: the token server confirmed the approval."
    case .denied: "Done: the token server confirmed the denial."
    case .pinWrong: "Count the last blinks: so many attempts are left."
    case .pinRefused(rule: 4): "The number of digits is wrong, and nothing was sent: type it again."
    case .pinRefused: "Choose another PIN. The number of blinks says why."
    case .outcomeUnknown: "Wait: the token asks the token server whether the answer arrived."
    case .mustEnroll: "Enroll the token with a URI from the portal."
    case .lookingForNetwork: "Wait. If it takes long: look at the network cable, or at the Wi-Fi's name and password."
    case .enrollmentFailed: "Count the slow blinks: they say why. Then try again, if it was refused with a new URI."
    case .seeLog: "Look at the log: `approval-token log`, or that of the service."
    }
  }
}
