// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import OpenPGP
import ReferenceProtocol
import Secrets
import Synchronization
import Testing

@testable import MobileAuth
@testable import ReferenceAdapter

/// Receipts and revocations that the token server signs.
@Suite(.timeLimit(.minutes(5))) struct SignedStatementsTests {
  private let server: FakeServer

  init() throws { server = try FakeServer() }

  private func adapter() throws -> ReferenceServerClient { try server.adapter(server.makeHTTPTransport()) }

  private func receipt(_ change: (inout ApprovalReceipt) -> Void = { _ in }, for body: [UInt8]) -> ApprovalReceipt {
    var receipt = ApprovalReceipt(
      iss: FakeServer.url, clientID: FakeServer.clientID, profileID: "PROFIL", transactionID: FakeServer.transaction,
      state: .authenticated, receipt: "R", idempotencyKey: "11111111-1111-4111-8111-111111111111",
      answerSHA256: SHA256.hash(body).base64URL)
    change(&receipt)
    return receipt
  }

  /// The outcome of a confirmation for a request that announced a signed receipt.
  private func outcome(
    signedBy signer: OpenPGPKey?, _ change: @escaping @Sendable (inout ApprovalReceipt) -> Void = { _ in }
  ) async throws -> TokenServerError? {
    var request = server.request()
    request.signedReceipt = true
    try server.serve(JSON.encode(request))
    let adapter = try adapter()
    let opened = try await adapter.open(server.pending)
    let accepted = try #require(
      opened.answered(
        by: Gesture(.hold, held: .milliseconds(900)), after: .seconds(1),
        idempotencyKey: "11111111-1111-4111-8111-111111111111"))
    let sealed = try await adapter.seal(accepted)
    let receipt = receipt(change, for: sealed.body)
    let message = try signer?.seal(JSON.encode(receipt), to: server.token.certificate).base64
    server.on("/requests/\(FakeServer.transaction)/answers") { _ in
      HTTPResponse(
        status: 200,
        body: JSON.encode(RequestStatus(state: .authenticated, receipt: "R", sealedReceipt: message)))
    }
    do {
      _ = try await adapter.deliver(sealed)
      return nil
    } catch { return error }
  }

  @Test("A confirmation counts only with the server's signature on exactly this answer")
  func signedReceipts() async throws {
    #expect(try await outcome(signedBy: server.server) == nil)
    #expect(try await outcome(signedBy: nil) != nil)
    #expect(try await outcome(signedBy: OpenPGPKey.generate(userID: "proxy")) != nil)
    let changes: [@Sendable (inout ApprovalReceipt) -> Void] = [
      { $0.answerSHA256 = SHA256.hash([]).base64URL }, { $0.idempotencyKey = "22222222-2222-4222-8222-222222222222" },
      { $0.transactionID = "00000000-0000-4000-8000-000000000002" }, { $0.state = .rejected }, { $0.receipt = "S" },
      { $0.profileID = "OTHERS" }, { $0.clientID = "B" }, { $0.iss = "https://evil.example" }, { $0.v = 2 },
    ]
    for change in changes { #expect(try await outcome(signedBy: server.server, change) != nil) }
  }

  /// Fails if the check is skipped because the receipt is missing: a proxy could keep the answer and report it as
  /// approved.
  @Test("A status that says answered needs the signed receipt, once the server has announced one")
  func unsignedStatus() async throws {
    server.on("/requests/\(FakeServer.transaction)") { _ in
      HTTPResponse(
        status: 200, body: JSON.encode(RequestStatus(state: .authenticated, idempotencyKey: "stolen")))
    }
    let adapter = try adapter()
    func status() async throws -> RemoteStatus {
      try await adapter.status(of: server.pending.transaction, account: AccountID("A"))
    }
    #expect(try await status().receipt == "none (not signed)")
    var request = server.request()
    request.signedReceipt = true
    try server.serve(JSON.encode(request))
    _ = try await adapter.open(server.pending)
    await #expect(throws: TokenServerError.self) { try await status() }
  }

  @Test("A revocation is proven only if the server signed it for a known account")
  func signedRevocations() throws {
    let adapter = try adapter()
    func sealed(
      _ signer: OpenPGPKey, profile: String = "PROFIL", client: String = FakeServer.clientID,
      scope: RevocationNotice.Scope = .user, layer: RevocationNotice.Layer? = nil
    ) throws -> String {
      let notice = RevocationNotice(
        iss: FakeServer.url, clientID: client, profileID: profile, scope: scope, layer: layer)
      return try signer.seal(JSON.encode(notice), to: server.token.certificate).base64
    }
    let stranger = try OpenPGPKey.generate(userID: "proxy")
    let worthless = [
      "", "%", try sealed(stranger), try sealed(server.server, profile: "OTHERS"),
      try sealed(server.server, client: "B"),
      try server.server.seal(JSON.encode(receipt(for: [])), to: server.token.certificate).base64,
    ]
    func proven(_ notices: [String]?) -> Set<Revocations.Subject> {
      var problem = Problem(.userDeregistered, issuer: FakeServer.url)
      problem.revocations = notices
      return adapter.provenRevocations(in: HTTPResponse(status: 404, body: JSON.encode(problem)))
    }
    #expect(proven(nil).isEmpty)
    #expect(proven(worthless).isEmpty)
    #expect(proven(worthless + [try sealed(server.server)]) == [.keys("PROFIL"), .profile("PROFIL")])
    #expect(proven([try sealed(server.server, scope: .device)]) == [.device, .keys("PROFIL"), .profile("PROFIL")])
    // The keys stay only if the server says that they do.
    for (layer, isKept) in [(.push, true), (.mobileAuth, false), (nil, false)] as [(RevocationNotice.Layer?, Bool)] {
      #expect(proven([try sealed(server.server, scope: .keys, layer: layer)]) == [.keys("PROFIL")])
      #expect(adapter.withoutPush.withLock { $0 } == (isKept ? ["PROFIL"] : []))
      #expect(proven([try sealed(stranger, scope: .keys, layer: .push)]).isEmpty)
      #expect(adapter.withoutPush.withLock { $0 } == (isKept ? ["PROFIL"] : []))
    }
  }
}
