// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// After the lifetime of a PIN, no trace of it is in the server's files, as text or bytes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINResidueTests {
  /// All encodings in which a secret could have been written.
  private func dresses(_ secret: [UInt8]) -> [[UInt8]] {
    [secret]
      + [secret.lowercaseHex, secret.uppercaseHex, secret.base64, secret.base64URL].map { Array($0.utf8) }
  }

  @Test("Neither refresh tokens nor proofs are written") func neitherRefreshTokensNorProofsAreWritten() throws {
    let fixture = try PINFixture()
    let device = try DeviceClient.enrolledWithPIN(at: fixture.server, as: "alice")
    let old = try #require(device.refreshToken)
    let transaction = try fixture.ask(device)
    var proofs: [[UInt8]] = []
    func answer(_ token: SecretBytes, attempt: Int) throws {
      let answer = try device.answerWithPIN(device.fetch(transaction), token, attempt: attempt) {
        proofs.append(bytes(base64URL: $0.pinProof ?? "") ?? [])
      }
      try device.send(answer, to: transaction)
    }
    try answer(.wrong, attempt: 1)
    try answer(old, attempt: 2)
    let login = try device.assertion("/oauth/token")
    try device.logInWithPIN(assertion: login).expect(200)
    let order = try device.assertion("/device/v1/profiles/PROF01/pin-changes")
    let change = try #require(try device.beginPINChange(assertion: order).change)
    try device.commitPINChange(change.id, change.refreshToken).expect(204)
    let signatures = try [login, order].map {
      try #require(bytes(base64URL: String($0.split(separator: ".")[2])))
    }
    #expect(fixture.server.stop() == 0)
    #expect(proofs.count == 2 && proofs.allSatisfy { $0.count == 64 })
    let files = ["token-server.db", "token-server.db-wal", "log"].compactMap { name in
      FileManager.default.contents(atPath: fixture.server.directory + "/" + name).map { (name, $0) }
    }
    #expect(files.map(\.0).contains("token-server.db") && files.map(\.0).contains("log"))
    // Positive control: each profile's public key is found.
    let written = Data(try device.knowledgeKey(change.refreshToken).publicKey.bytes)
    #expect(files.contains { $0.1.range(of: written) != nil })
    for secret in [old.exposed, change.refreshToken.exposed] + proofs + signatures {
      for dress in dresses(secret) {
        for (name, content) in files { #expect(content.range(of: Data(dress)) == nil, "\(name)") }
      }
    }
  }
}
