import CRNP
import Glibc

/// One librnp instance with the keys of one conversation in it. Not thread-safe, as librnp is not: whoever holds it is
/// alone with it.
///
/// It asks for no password unless given somebody to ask. Debian's librnp says on standard error why it refused
/// something (numbers, key IDs, nothing of a plaintext), and has no way to be told not to.
final class Keyring {
  struct Parts: OptionSet {
    let rawValue: UInt32
    static let publicParts = Parts(rawValue: 1 << 0)
    static let secretParts = Parts(rawValue: 1 << 1)
  }

  private let instance: Handle
  var ffi: OpaquePointer { instance.pointer }

  /// - Parameter time: what librnp takes for now, in seconds since 1970.
  init(at time: UInt32) throws(OpenPGPError) {
    instance = try Handle("rnp_ffi_create", destroyedBy: rnp_ffi_destroy) { rnp_ffi_create(&$0, "GPG", "GPG") }
    try setTime(time)
  }

  /// Keys are judged as of the time they are loaded; messages as of the time they are opened.
  func setTime(_ time: UInt32) throws(OpenPGPError) {
    try check(rnp_set_timestamp(ffi, UInt64(time)), "rnp_set_timestamp")
  }

  func load(_ bytes: UnsafeRawBufferPointer, _ parts: Parts) throws(OpenPGPError) {
    let input = try input(reading: bytes)
    guard rnp_load_keys(ffi, "GPG", input.pointer, parts.rawValue) == RNP_SUCCESS else {
      throw .malformed("no readable key")
    }
  }

  func load(_ certificate: OpenPGPCertificate) throws(OpenPGPError) {
    try certificate.bytes.withUnsafeBufferPointer { (bytes) throws(OpenPGPError) in
      try load(UnsafeRawBufferPointer(bytes), .publicParts)
    }
  }

  func key(_ fingerprint: String) throws(OpenPGPError) -> Handle {
    try Handle("rnp_locate_key", destroyedBy: rnp_key_handle_destroy) { key in
      rnp_locate_key(ffi, "fingerprint", fingerprint, &key)
    }
  }
}

/// Seconds since 1970 as OpenPGP and librnp can say them: 32 bits, and never 0, which librnp takes for "ask the clock".
/// - Parameter time: `nil` for the system's clock.
func openPGPTime(_ time: Int64?) -> UInt32 {
  max(1, UInt32(clamping: time ?? Int64(Glibc.time(nil))))
}
