// SPDX-License-Identifier: Apache-2.0
import CRNP
import Glibc

/// One librnp instance with the keys for one peer. Not thread-safe, as librnp is not: only one thread may use it at a
/// time.
///
/// It asks for no password unless it has a password provider.
final class Keyring {
  struct Parts: OptionSet {
    let rawValue: UInt32
    static let publicParts = Parts(rawValue: 1 << 0)
    static let secretParts = Parts(rawValue: 1 << 1)
  }

  private let instance: Handle
  var ffi: OpaquePointer { instance.pointer }

  /// - Parameter time: the present time for librnp, in seconds since 1970.
  init(at time: UInt32) throws(OpenPGPError) {
    Library.isSilent
    instance = try Handle("rnp_ffi_create", destroyedBy: rnp_ffi_destroy) { rnp_ffi_create(&$0, "GPG", "GPG") }
    try setTime(time)
  }

  /// Keys are validated for the time when they are loaded, messages for the time when they are opened.
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

  /// Removes all certificates.
  func unloadCertificates() throws(OpenPGPError) {
    try check(rnp_unload_keys(ffi, UInt32(RNP_KEY_UNLOAD_PUBLIC)), "rnp_unload_keys")
  }

  func key(_ fingerprint: String) throws(OpenPGPError) -> Handle {
    try Handle("rnp_locate_key", destroyedBy: rnp_key_handle_destroy) { key in
      rnp_locate_key(ffi, "fingerprint", fingerprint, &key)
    }
  }
}

/// Converts seconds since 1970 to the 32 bits of OpenPGP and librnp. Never 0, because librnp then uses the system's
/// clock.
/// - Parameter time: `nil` for the system's clock.
func openPGPTime(_ time: Int64?) -> UInt32 {
  max(1, UInt32(clamping: time ?? Int64(Glibc.time(nil))))
}
