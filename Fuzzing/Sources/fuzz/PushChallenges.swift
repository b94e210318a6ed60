// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import DisplayText
import HTTP
import MobileAuth

@testable import JSONValues
@testable import PrivacyIDEAAdapter

/// A push server's response to a poll: the reply around it, and challenges that the harness signs as the server would.
func readPushChallenges(_ bytes: [UInt8]) {
  var input = Input(bytes, choices: 3)
  switch input.choice {
  case 0:
    guard let status = statuses.randomAccess(input.byte()) else { return }
    _ = Reply(HTTPResponse(status: status, body: input.bytes)).map { "\($0)" }
  case 1: if let list = JSONValue(parsing: input.bytes)?.list { replace(list) }
  default: if let element = signed(input.bytes) { replace([element, element]) }
  }
}

private let statuses = [200, 201, 400, 401, 403, 404, 500, 503]

extension Array {
  /// The element that `byte` selects.
  func randomAccess(_ byte: UInt8) -> Element? { isEmpty ? nil : self[Int(byte & 0x0F) % count] }
}

/// The required members of a challenge, unless the input has others, and a signature over them.
private func signed(_ bytes: [UInt8]) -> JSONValue? {
  guard let value = JSONValue(parsing: bytes), case .object(var members) = value else { return nil }
  let usual = [
    "nonce": "N", "url": "https://pi.example/ttype/push", "serial": "PIPU1", "question": "Q", "title": "T",
    "sslverify": "1",
  ]
  members.merge(usual.mapValues { .text($0) }) { given, _ in given }
  let names = ["nonce", "url", "serial", "question", "title", "sslverify", "require_presence"]
  members["signature"] = .text(signature(names.compactMap { members[$0]?.text }.joined(separator: "|")))
  if let capabilities = members["capabilities"], let nonce = members["nonce"] {
    let read = capabilities.text.flatMap { JSONValue(parsing: Array($0.utf8)) } ?? capabilities
    members["capabilities_signature"] = .text(
      signature(JSONValue.object(["capabilities": read, "nonce": nonce]).canonical))
  }
  return .object(members)
}

private func signature(_ text: String) -> String {
  orTrap { try Keys.pushServer.signature(for: Array(text.utf8)).base32 }
}

private func replace(_ elements: [JSONValue]) {
  let book = ChallengeStore(of: TokenServerID("pi.example"))
  let now = MonotonicInstant(uptime: .zero)
  for _ in 0..<2 {
    let number = book.nextList()
    let list = book.verify(
      elements, of: AccountID("ann"), serial: "PIPU1", key: Keys.pushServer.publicKey, now: now,
      serverMilliseconds: 1_795_253_339_000)
    _ = book.replace(with: list, number: number)
  }
  for (transaction, entry) in book.entries {
    _ = (entry.challenge.question.sanitized, book.countWrongChoice(transaction))
    book.finish(transaction)
  }
}
