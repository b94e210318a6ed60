// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ReferenceProtocol

/// The token's control socket, used directly, because starting a command for each call would be measured too.
struct ControlSocket {
  let path: String

  struct LED: Decodable, Equatable {
    var meaning: String
    var color: String?
  }

  /// One call and the lines of its answer.
  final class Call {
    private let descriptor: Int32
    private var bytes: [UInt8] = []

    fileprivate init(_ path: String, _ request: String) throws {
      descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      let code = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      guard code == 0 else { throw BenchError("\(path): \(String(cString: strerror(errno)))") }
      let line = Array("\(request)\n".utf8)
      guard send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
        throw BenchError("\(path) is closed")
      }
    }

    deinit { close(descriptor) }

    func readLine() throws -> [UInt8] {
      while true {
        if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
          defer { bytes.removeSubrange(...end) }
          return Array(bytes[..<end])
        }
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &chunk, chunk.count)
        guard count > 0 else { throw BenchError("the token ended a call") }
        bytes += chunk[..<count]
      }
    }

    /// Waits until the LED's meaning begins with the text.
    /// - Parameter isLit: whether it must also be lit; an idle LED is lit only every 10 s.
    /// - Returns: when that was reported.
    @discardableResult
    func waitForLED(_ meaning: String, isLit: Bool = true) throws -> Instant {
      while true {
        let led = try JSON.decode(LED.self, from: readLine())
        if led.meaning.hasPrefix(meaning), led.color != nil || !isLit { return .now }
      }
    }
  }

  /// Presses keys of the simulated keypad.
  /// - Returns: when that was reported.
  @discardableResult
  func press(_ keys: [String]) throws -> Instant {
    let list = keys.map { "\"\($0)\"" }.joined(separator: ",")
    _ = try Call(path, #"{"request":"keys","keys":[\#(list)]}"#).readLine()
    return .now
  }

  /// Types a new PIN, as an enrollment asks for it.
  func choose(_ pin: String, asBy led: Call) throws {
    for wanted in ["new PIN wanted", "new PIN wanted, a second time"] {
      _ = try led.waitForLED(wanted)
      pause(seconds: 0.6)
      try press(pin.map(String.init) + ["enter"])
    }
  }

  /// Delivers a push message.
  /// - Returns: when that was begun.
  func bring(_ message: [UInt8]) throws -> Instant {
    struct Request: Encodable {
      let request = "push"
      let message: String
    }
    let began = Instant.now
    let request = Request(message: String(decoding: message, as: UTF8.self))
    _ = try Call(path, String(decoding: JSON.encode(request), as: UTF8.self)).readLine()
    return began
  }

  func followLED() throws -> Call { try Call(path, #"{"request":"follow-led"}"#) }

  /// Presses, holds and releases the button.
  /// - Returns: when the release was reported.
  func hold(seconds: Double) throws -> Instant {
    _ = try Call(path, #"{"request":"hold","milliseconds":\#(Int(seconds * 1000))}"#).readLine()
    return .now
  }
}
