// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5))) struct PendingListTests {
  @Test("The list holds the newest requests, up to the size that a token accepts")
  func bounded() {
    let entries = (0..<200).map { number in
      PendingEntry(
        transactionID: "\(number)", profileID: "PROFIL", message: String(repeating: "\u{1}", count: 10_000),
        typeHint: "login", sentAtMs: 1, timeToLiveMs: 1, expiresInMs: 1)
    }
    let newest = RequestRoutes.newest(of: entries)
    #expect(!newest.isEmpty && newest == Array(entries.prefix(newest.count)))
    #expect(JSON.encode(PendingList(serverTimeMs: 1, requests: newest)).count < 512 * 1024)
    #expect(RequestRoutes.newest(of: Array(entries.prefix(2))).count == 2)
  }
}
