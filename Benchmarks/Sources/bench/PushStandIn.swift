// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import Glibc
import ReferenceProtocol
import Synchronization

/// A simulated push server in this process, reduced to the needs of a token: it verifies signatures and stores nothing.
/// privacyIDEA's own time, hundreds of milliseconds, would dominate the measurement.
final class PushStandIn: Sendable {
  private struct State {
    var keys: [String: RSAPublicKey] = [:]
    /// The open challenge by serial, one at a time.
    var open: [String: Challenge] = [:]
    /// For each poll, when its response had been written.
    var polls: [(serial: String, answered: Instant)] = []
    var failures: [String: Int] = [:]
  }

  private struct Challenge {
    let nonce: String
    let element: [String: String]
  }

  static let path = "/ttype/push"
  let wire: TLSStandIn
  var authority: String { wire.authority }
  var endpoint: String { wire.origin + Self.path }
  private let key: RSAPrivateKey
  private let state = Mutex(State())

  init(on stage: Stage) throws {
    wire = try TLSStandIn(on: stage)
    // The size of privacyIDEA's keys.
    key = try RSAPrivateKey(bits: 4096)
    wire.serve { [self] in answer($0) }
  }

  // MARK: Administrator and portal

  /// - Parameter pin: whether the token verifies a PIN before each approval.
  /// - Returns: an enrollment URL. Any credential is accepted here.
  func url(for serial: String, pin: Bool = false) -> String {
    "otpauth://pipush/\(serial)?url=\(endpoint.replacing(":", with: "%3A"))&ttl=10&issuer=bench"
      + "&enrollment_credential=\(Random.bytes(20).lowercaseHex)&v=1&serial=\(serial)&sslverify=1&poll_only=True"
      + (pin ? "&pin=True" : "")
  }

  func enroll(_ serial: String, _ key: RSAPublicKey) { state.withLock { $0.keys[serial] = key } }

  /// Begins a login; its challenge is signed when this returns.
  /// - Returns: the nonce.
  func challenge(_ serial: String) throws -> String {
    let nonce = Random.bytes(20).base32
    var element = [
      "nonce": nonce, "url": endpoint, "serial": serial, "question": "Do you want to confirm the login?",
      "title": "privacyIDEA", "sslverify": "1", "capabilities": #"{"decline_reason": true}"#,
    ]
    let names = ["nonce", "url", "serial", "question", "title", "sslverify"]
    element["signature"] = try sign(names.map { element[$0] ?? "" }.joined(separator: "|"))
    element["capabilities_signature"] = try sign(#"{"capabilities":{"decline_reason":true},"nonce":"\#(nonce)"}"#)
    let challenge = Challenge(nonce: nonce, element: element)
    state.withLock { $0.open[serial] = challenge }
    return nonce
  }

  // MARK: Observations

  var pollCount: Int { state.withLock { $0.polls.count } }

  /// Waits for a poll whose response was written after `instant`.
  /// - Returns: when it was written.
  func answered(_ serial: String, after instant: Instant) throws -> Instant {
    let limit = instant + 5
    while Instant.now < limit {
      let poll = state.withLock { $0.polls.last { $0.serial == serial && $0.answered > instant } }
      if let poll { return poll.answered }
      pause(seconds: 0.01)
    }
    throw BenchError("no poll within 5 s")
  }

  func requireNoFailures() throws {
    let failures = state.withLock { $0.failures }
    guard failures.isEmpty, wire.malformedCount == 0 else {
      throw BenchError(
        "\(wire.malformedCount) times no HTTP; "
          + failures.map { "\($0.key) (\($0.value) times)" }.joined(separator: "; "))
    }
  }

  // MARK: Requests

  private func answer(_ request: TLSStandIn.Request) -> TLSStandIn.Response {
    let polled = request.method == "GET" ? verifiedSerial(of: request.target) : nil
    let content = request.method == "GET" ? list(polled) : taken(request.body)
    return .init(
      status: content == nil ? 400 : 200,
      content: content ?? #"{"result":{"status":false,"error":{"code":10,"message":"ERR10"}}}"#
    ) { [self] in
      if let polled { state.withLock { $0.polls.append((polled, .now)) } }
    }
  }

  /// The token with whose key a poll is signed.
  private func verifiedSerial(of target: String) -> String? {
    let items = URLComponents(string: target)?.queryItems ?? []
    let query = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
    let serial = query["serial"] ?? ""
    guard let stamp = query["timestamp"], isSigned("\(serial)|\(stamp)", by: serial, query["signature"]) else {
      fail("a poll that is not signed")
      return nil
    }
    return serial
  }

  private func list(_ serial: String?) -> String? {
    guard let serial else { return nil }
    let elements = state.withLock { $0.open[serial].map { [$0.element] } ?? [] }
    return #"{"result":{"status":true,"value":\#(String(decoding: JSON.encode(elements), as: UTF8.self))}}"#
  }

  private struct Post: Decodable {
    var serial: String
    var pubkey: String?
    var nonce: String?
    var signature: String?
  }

  private func taken(_ body: [UInt8]) -> String? {
    guard let post = try? JSON.decode(Post.self, from: body) else {
      fail("a post that is not understood")
      return nil
    }
    if let der = post.pubkey.flatMap({ bytes(base64: $0) }), let device = try? RSAPublicKey(subjectPublicKeyInfo: der) {
      enroll(post.serial, device)
      let detail = #"{"public_key":"\#(key.publicKey.pkcs1.base64)","serial":"\#(post.serial)"}"#
      return #"{"result":{"status":true,"value":true},"detail":\#(detail)}"#
    }
    guard let nonce = post.nonce, isSigned("\(nonce)|\(post.serial)", by: post.serial, post.signature),
      state.withLock({ $0.open[post.serial]?.nonce }) == nonce
    else {
      fail("an answer that is none")
      return nil
    }
    state.withLock { $0.open[post.serial] = nil }
    return #"{"result":{"status":true,"value":true}}"#
  }

  private func isSigned(_ text: String, by serial: String, _ signature: String?) -> Bool {
    guard let key = state.withLock({ $0.keys[serial] }), let signature = signature.flatMap({ bytes(base32: $0) }) else {
      return false
    }
    return key.isValidSignature(signature, for: Array(text.utf8))
  }

  private func sign(_ text: String) throws -> String { try key.signature(for: Array(text.utf8)).base32 }

  private func fail(_ why: String) { state.withLock { $0.failures[why, default: 0] += 1 } }
}
