// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONValues
import Testing

@Suite("The lines of `watch`", .timeLimit(.minutes(1))) struct PanelChangeTests {
  private func line(_ change: PanelChange) -> String { String(decoding: JSONMessage.encode(change), as: UTF8.self) }

  @Test("Each has the version and the event") func form() {
    #expect(line(.idle) == #"{"event":"idle","version":1}"#)
    #expect(
      line(PanelChange(ended: "T", "answered"))
        == #"{"event":"ended","reason":"answered","transaction":"T","version":1}"#)
  }

  @Test("A shown request has the verified texts") func verifiedTexts() throws {
    var request = PendingSummary(transaction: "T", account: "a", server: "s", expiresInSeconds: 60)
    request.verified = VerifiedSummary(
      signature: "openpgp", type: "payment", message: "Pay\n12", pushMessage: "p", sha256: "ab")
    let written = JSONMessage.encode(PanelChange(shown: request))
    guard case .answer(let read) = try ControlResponse<PanelChange>(line: written) else {
      Issue.record("not an answer")
      return
    }
    #expect(read.event == "shown" && read.request?.verified == request.verified)
    let text = String(decoding: written, as: UTF8.self)
    #expect(
      text.contains(
        #""verified":{"message":"Pay\n12","push_message":"p","sha256":"ab","signature":"openpgp","type":"payment"}"#))
  }

  @Test("An event of a later release is read") func laterRelease() throws {
    let later = Array(#"{"event":"dimmed","version":1,"more":[1]}"#.utf8)
    guard case .answer(let read) = try ControlResponse<PanelChange>(line: later) else {
      Issue.record("not an answer")
      return
    }
    #expect(read.event == "dimmed" && read.request == nil)
  }
}
