// SPDX-License-Identifier: Apache-2.0
/// librnp 0.18.0 encrypts every message with a session key of zeros, so that everyone can read it (CVE-2025-13470).
/// Distributions fix that without a change of the version number. This check therefore tests the library: two messages
/// must not have the same session key.
enum SessionKeyCheck {
  /// Computed on first use, once per process, in some milliseconds.
  static let verdict: Result<Void, OpenPGPError> = Result { () throws(OpenPGPError) in
    let key = try OpenPGPKey.generate(userID: "session key check")
    let one = try key.sealUnchecked([1], to: key.certificate, at: nil)
    let other = try key.sealUnchecked([1], to: key.certificate, at: nil)
    guard opens(one, key) else { throw .libraryFailure("librnp does not open its own message") }
    let crossed = try Array(one[..<endOfSessionKey(one)] + other[endOfSessionKey(other)...])
    guard !opens(crossed, key) else {
      throw .libraryFailure("this librnp chooses no session keys (CVE-2025-13470); install a newer one")
    }
  }

  private static func opens(_ message: [UInt8], _ key: OpenPGPKey) -> Bool {
    (try? key.open(message, from: key.certificate)) != nil
  }

  private static func endOfSessionKey(_ message: [UInt8]) throws(OpenPGPError) -> Int {
    try message.withUnsafeBufferPointer { (message) throws(OpenPGPError) in
      try Packet.sequence(in: UnsafeRawBufferPointer(message))[0].end
    }
  }
}
