// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import Secrets
import ServerBackends
import Synchronization

@testable import JSONValues
@testable import PingAMAdapter

/// A push message of PingAM, from the delivered bytes to the request that the user sees. The harness signs claims as AM
/// would, because an attacker who can make AM send a push controls parts of them.
func readPushEnvelope(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 3)
  let receiver = PushReceiver()
  switch input.choice {
  case 0: receiver.take(input.bytes)
  case 1: receiver.take(signed(payload: input.bytes))
  default:
    if let claims = JSONValue(parsing: input.bytes), case .object(let members) = claims {
      receiver.take(signed(payload: Array(JSONValue.object(members.merging(needed) { $1 }).canonical.utf8)))
    }
  }
}

private let uid = "11111111-1111-4111-8111-111111111111"
private let needed = ["u": JSONValue.text(uid), "c": JSONValue.text([UInt8](repeating: 1, count: 32).base64)]

private func signed(payload: [UInt8]) -> [UInt8] {
  let token = JWS.sign(header: Array(#"{"typ":"JWT","alg":"HS256"}"#.utf8), payload: payload, secret: Keys.shared)
  let envelope = JSONValue.object(["messageId": .text("AUTHENTICATE:1"), "message": .text(token)])
  return Array(envelope.canonical.utf8)
}

/// One account at one AM, and a message store.
final class PushReceiver: Sendable {
  private let registry = MemoryRegistry()
  private let messageStore = MemoryMessageStore()
  private let clock = ManualClock(wallClockMilliseconds: 1_795_253_339_000)
  private let environment: TokenEnvironment
  let ingress: PushIngress

  init() {
    let metadata = Mechanism.Metadata(
      uid: uid, issuer: "AM", accountName: "ann", registrationURL: "https://am.example/r",
      authenticationURL: "https://am.example/a", deviceToken: "mailbox")
    let mechanism = Mechanism(metadata: metadata, secret: SharedSecret(bytes: Keys.shared))
    let server = TokenServerRecord(
      id: TokenServerID("am.example"), kind: PingAM.kind, url: "https://am.example", secrets: SecretBytes(copying: []))
    let account = mechanism.stored(
      in: AccountRecord(
        id: AccountID("ann"), server: server.id, profile: "ann", stage: .active, secrets: SecretBytes(copying: [])))
    orTrap { [registry] in
      try registry.put(server)
      try registry.put(account, nil)
    }
    let environment = TokenEnvironment.test(clock).reporting { event in _ = "\(event)" }
    self.environment = environment
    ingress = PushIngress(registry: registry, messageStore: messageStore, in: environment)
  }

  func take(_ bytes: [UInt8]) {
    guard case .stored(_)? = try? ingress.accept(bytes) else { return }
    require((try? ingress.accept(bytes)) == .known(AccountID("ann")), "a message that was kept is known")
    clock.advance(by: .seconds(1))
    wait { [self] in
      guard let server = try? server, let pending = try? await server.pendingRequests() else { return }
      for request in pending { _ = try? await server.open(request) }
    }
  }

  private var server: PingAMServerClient {
    get throws {
      try PingAMServerClient(
        registry.servers()[0], accounts: registry.accounts(),
        http: RecordingHTTPTransport { _ in HTTPResponse(status: 200) },
        dependencies: PingAMServerClient.Dependencies(
          ingress: ingress, messageStore: messageStore, settings: PingAMEnrollment.Settings(), pinVerifier: nil,
          isTamperedWith: { false }, in: environment.reporting { _ in }))
    }
  }
}

/// A message store in memory.
private final class MemoryMessageStore: PushMessageStore {
  private let kept = Mutex<[DeliveredMessage]>([])

  func store(_ message: DeliveredMessage, whenReadable: () -> Void) throws(StateStoreError) -> Bool {
    let isNew = kept.withLock { kept in
      let isNew = !kept.contains { $0.transaction == message.transaction || $0.reference == message.reference }
      if isNew { kept.append(message) }
      return isNew
    }
    if isNew { whenReadable() }
    return isNew
  }
  func message(_ transaction: TransactionID) throws(StateStoreError) -> DeliveredMessage? {
    kept.withLock { $0.first { $0.transaction == transaction } }
  }
  func pendingMessages() throws(StateStoreError) -> [DeliveredMessage] {
    kept.withLock { $0.filter { $0.state == .pending } }
  }
  func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) {
    kept.withLock { kept in kept.removeAll { $0.transaction == transaction } }
  }
}
