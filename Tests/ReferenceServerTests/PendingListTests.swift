// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PendingListTests {
  @Test("The list holds the newest requests, up to the size that a token accepts")
  func bounded() throws {
    let entries = (0..<200).map { number in
      PendingEntry(
        transactionID: "\(number)", profileID: "PROFIL", message: String(repeating: "\u{1}", count: 10_000),
        typeHint: "login", sentAtMs: 1, timeToLiveMs: 1, expiresInMs: 1)
    }
    let list = RequestRoutes.list(of: entries, at: Timestamp(1))
    let newest = try JSON.decode(PendingList.self, from: list.bytes).requests
    #expect(!newest.isEmpty && newest == Array(entries.prefix(list.count)))
    #expect(list.bytes.count < 512 * 1024)
    let short = RequestRoutes.list(of: Array(entries.prefix(2)), at: Timestamp(1))
    #expect(short.count == 2)
    #expect(short.bytes == JSON.encode(PendingList(serverTimeMs: 1, requests: Array(entries.prefix(2)))))
  }
}
