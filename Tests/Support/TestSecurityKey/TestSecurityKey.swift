// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Glibc
import Synchronization
import Threads

/// A FIDO2 security key: CTAP2 (getInfo, makeCredential, getAssertion) over CTAPHID reports on a Unix socket
/// (SOCK_SEQPACKET). One connection at a time.
/// `TestKeyCard` has one over NFC.
package final class TestSecurityKey: Sendable {
  /// What the key does wrong, or what its user does.
  package enum Behavior: Sendable {
    /// Is touched after this time.
    case touched(after: Duration)
    /// Waits until it is touched by `touch`, or canceled.
    case untouched
    /// Ends a call with this CTAP2 status.
    case refuses(UInt8)
    /// Waits this long for a touch; without one, ends the call with this CTAP2 status.
    case givesUp(after: Duration, with: UInt8)
    /// Signs with another key than the one that it registered.
    case signsWithAnotherKey
    /// Says that it was not touched.
    case isNotTouched
    /// Signs for another relying party.
    case signsForAnotherServer
    /// Is pulled out during the call.
    case isRemoved
  }

  private struct State {
    var behavior = Behavior.touched(after: .zero)
    var counter: UInt32 = 0
    var canceled = 0
    var calls: [UInt8] = []
    var isTouched = false
  }

  package let path: String
  package let key: P256PrivateKey
  private let otherKey: P256PrivateKey
  private let credential: [UInt8]
  /// -1 after its end: the number may then be another file's.
  private let listener: Mutex<Int32>
  private let state = Mutex(State())

  /// Without a socket, for a card.
  package init(credentialSize: Int) throws {
    path = ""
    key = try P256PrivateKey()
    otherKey = try P256PrivateKey()
    credential = Random.bytes(credentialSize)
    listener = Mutex(-1)
  }

  /// - Parameter path: of the socket, which is made.
  package init(at path: String) throws {
    self.path = path
    key = try P256PrivateKey()
    otherKey = try P256PrivateKey()
    credential = Random.bytes(48)
    let listener = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    precondition(isBound && listen(listener, 4) == 0, "no socket at \(path)")
    self.listener = Mutex(listener)
    precondition(detachThread { self.serve(listener) }, "no thread is left")
  }

  package func set(_ behavior: Behavior) { state.withLock { $0.behavior = behavior } }

  /// Touches the key in the call that waits for it; not one in a card reader.
  package func touch() { state.withLock { $0.isTouched = true } }

  /// The number of calls that were canceled.
  package var canceled: Int { state.withLock { $0.canceled } }
  /// The CTAP2 commands so far, without getInfo.
  package var calls: [UInt8] { state.withLock { $0.calls } }

  /// Unplugs the key for good.
  package func stop() { listener.withLock { if $0 >= 0 { shutdown($0, Int32(SHUT_RDWR)) } } }

  private func serve(_ listener: Int32) {
    while case let connection = accept(listener, nil, nil), connection >= 0 {
      var channel = HIDChannel(descriptor: connection)
      while let message = channel.receive() {
        guard answer(message, on: &channel) else { break }
      }
      close(connection)
    }
    self.listener.withLock { $0 = -1 }
    close(listener)
    unlink(path)
  }

  /// - Returns: false if the key was removed.
  private func answer(_ message: HIDChannel.Message, on channel: inout HIDChannel) -> Bool {
    switch message.command {
    case HIDChannel.initialize:
      // A new channel; CTAPHID 2; CBOR without U2F messages.
      channel.send(HIDChannel.initialize, message.payload.prefix(8) + [1, 2, 3, 4, 2, 1, 0, 0, 0x0C])
    case HIDChannel.cbor:
      guard let reply = perform(message.payload, { wait($0, on: &channel) }) else { return false }
      channel.send(HIDChannel.cbor, reply)
    default: break
    }
    return true
  }

  /// - Parameter wait: waits for a touch; returns false if the call was canceled.
  /// - Returns: the status and the CBOR of a reply; nil if the key was removed.
  func perform(_ call: [UInt8], _ wait: (Duration) -> Bool) -> [UInt8]? {
    guard let command = call.first else { return [0x03] }
    guard command != 0x04 else { return [0] + Self.information.encoded }
    let behavior = state.withLock { state in
      state.calls.append(command)
      state.isTouched = false
      return state.behavior
    }
    guard let request = CBOR(Array(call.dropFirst())) else { return [0x12] }
    switch behavior {
    case .isRemoved: return nil
    case .refuses(let status): return [status]
    case .givesUp(let pause, let status):
      guard wait(pause) else { return [0x2D] }
      guard state.withLock({ $0.isTouched }) else { return [status] }
    case .touched(let pause): guard wait(pause) else { return [0x2D] }
    case .untouched: guard wait(.seconds(600)) else { return [0x2D] }
    case .signsWithAnotherKey, .isNotTouched, .signsForAnotherServer: break
    }
    return command == 0x01 ? make(request) : sign(request, behavior)
  }

  /// Reports that it waits for a touch.
  /// - Returns: false if the call was canceled.
  private func wait(_ pause: Duration, on channel: inout HIDChannel) -> Bool {
    let end = ContinuousClock.now + pause
    while ContinuousClock.now < end, !state.withLock({ $0.isTouched }) {
      channel.send(HIDChannel.keepAlive, [2])
      guard let message = channel.receive(within: 50) else {
        if channel.isClosed { return false }
        continue
      }
      if message.command == HIDChannel.cancel {
        noteCancellation()
        return false
      }
    }
    return true
  }

  func noteCancellation() { state.withLock { $0.canceled += 1 } }

  private static let information = CBOR.map([
    (.number(1), .list([.text("FIDO_2_0")])), (.number(3), .bytes([UInt8](repeating: 0, count: 16))),
    (.number(4), .map([(.text("rk"), .flag(false)), (.text("up"), .flag(true))])), (.number(5), .number(1200)),
  ])

  private func make(_ request: CBOR) -> [UInt8] {
    guard let relyingParty = request[2]?["id"], let hash = request[1]?.content else { return [0x14] }
    let point = CBOR.map([
      (.number(1), .number(2)), (.number(3), .number(-7)), (.number(-1), .number(1)),
      (.number(-2), .bytes(key.publicKey.x)), (.number(-3), .bytes(key.publicKey.y)),
    ])
    let data =
      authenticatorData(relyingParty.content, flags: 0x41) + [UInt8](repeating: 0, count: 16)
      + [UInt8(credential.count >> 8), UInt8(credential.count & 255)] + credential + point.encoded
    guard let signature = try? key.derSignature(for: data + hash) else { return [0x7F] }
    let statement = CBOR.map([(.text("alg"), .number(-7)), (.text("sig"), .bytes(signature))])
    return [0]
      + CBOR.map([(.number(1), .text("packed")), (.number(2), .bytes(data)), (.number(3), statement)]).encoded
  }

  private func sign(_ request: CBOR, _ behavior: Behavior) -> [UInt8] {
    guard let relyingParty = request[1]?.content, let hash = request[2]?.content,
      case .list(let allowed) = request[3] ?? .list([])
    else { return [0x14] }
    guard allowed.contains(where: { $0["id"]?.content == credential }) else { return [0x2E] }
    var (flags, signer, name): (UInt8, P256PrivateKey, [UInt8]) = (1, key, relyingParty)
    switch behavior {
    case .isNotTouched: flags = 0
    case .signsWithAnotherKey: signer = otherKey
    case .signsForAnotherServer: name = Array("evil.example".utf8)
    default: break
    }
    let data = authenticatorData(name, flags: flags)
    guard let signature = try? signer.derSignature(for: data + hash) else { return [0x7F] }
    let descriptor = CBOR.map([(.text("id"), .bytes(credential)), (.text("type"), .text("public-key"))])
    return [0]
      + CBOR.map([(.number(1), descriptor), (.number(2), .bytes(data)), (.number(3), .bytes(signature))]).encoded
  }

  private func authenticatorData(_ relyingParty: [UInt8], flags: UInt8) -> [UInt8] {
    let counter = state.withLock { state in
      state.counter += 1
      return state.counter
    }
    return SHA256.hash(relyingParty) + [flags] + (0..<4).map { UInt8(counter >> (24 - 8 * $0) & 255) }
  }
}
