// SPDX-License-Identifier: Apache-2.0
import CRNP
import Glibc
import Secrets
import Synchronization

/// The only owner of one librnp object, which is destroyed with this value.
struct Handle: ~Copyable {
  let pointer: OpaquePointer
  private let destroy: (OpaquePointer?) -> rnp_result_t

  init(
    _ call: String, destroyedBy destroy: @escaping (OpaquePointer?) -> rnp_result_t,
    madeBy make: (inout OpaquePointer?) -> rnp_result_t
  ) throws(OpenPGPError) {
    var made: OpaquePointer?
    try check(make(&made), call)
    guard let made else { throw .libraryFailure("\(call): nothing there") }
    Library.isWatched
    pointer = made
    self.destroy = destroy
  }

  deinit { Library.whileItLives { _ = destroy(pointer) } }
}

/// What applies to the whole library: its messages, and its destruction during exit. exit(3) destroys the static
/// objects of librnp and Botan, and another thread may release its last key afterwards. From then on librnp objects are
/// not destroyed; the process ends in any case.
enum Library {
  private static let isOver = Mutex(false)
  /// Drops librnp's messages. Access it before the first call that may write one: each is about data of others, who
  /// could fill the journal with them; the callers' errors say what was wrong.
  static let isSilent: Void = approval_rnp_silence()
  /// Registers the exit handler. Access it after the library has created its first object: handlers run in reverse
  /// order of registration.
  static let isWatched: Void = { _ = atexit { Library.isOver.withLock { $0 = true } } }()

  static func whileItLives(_ body: () -> Void) { isOver.withLock { if !$0 { body() } } }
}

/// Throws `libraryFailure` unless the call succeeded. For calls that fail only on misuse or lack of resources; results
/// that depend on the input are handled where they occur.
func check(_ result: rnp_result_t, _ call: String) throws(OpenPGPError) {
  guard result == RNP_SUCCESS else {
    throw .libraryFailure("\(call): \(rnp_result_to_string(result).map { String(cString: $0) } ?? "\(result)")")
  }
}

/// Reads a value that librnp writes through a pointer.
func value<Value>(
  _ call: String, initially value: Value, _ get: (inout Value) -> rnp_result_t
) throws(OpenPGPError) -> Value {
  var value = value
  try check(get(&value), call)
  return value
}

/// Reads a string that librnp allocates.
func string(
  _ call: String, _ get: (inout UnsafeMutablePointer<CChar>?) -> rnp_result_t
) throws(OpenPGPError) -> String {
  let allocated = try value(call, initially: nil, get)
  defer { rnp_buffer_destroy(allocated) }
  return allocated.map { String(cString: $0) } ?? ""
}

/// Lets librnp read `bytes` in place. They must outlive the handle.
func input(reading bytes: UnsafeRawBufferPointer) throws(OpenPGPError) -> Handle {
  try Handle("rnp_input_from_memory", destroyedBy: rnp_input_destroy) { input in
    rnp_input_from_memory(&input, bytes.assumingMemoryBound(to: UInt8.self).baseAddress, bytes.count, false)
  }
}

/// An in-memory output of librnp. Zeroed before it is freed.
struct MemoryOutput: ~Copyable {
  private let handle: Handle
  var pointer: OpaquePointer { handle.pointer }

  /// - Parameter limit: the number of bytes after which writing fails; 0 for no limit.
  init(limit: Int = 0) throws(OpenPGPError) {
    handle = try Handle("rnp_output_to_memory", destroyedBy: rnp_output_destroy) { rnp_output_to_memory(&$0, limit) }
  }

  deinit {
    let written = written
    rnp_buffer_clear(UnsafeMutableRawPointer(mutating: written.baseAddress), written.count)
  }

  func bytes() -> [UInt8] { Array(written) }
  func secretBytes() -> SecretBytes { SecretBytes(copying: written) }

  /// Valid until more is written.
  private var written: UnsafeRawBufferPointer {
    var buffer: UnsafeMutablePointer<UInt8>?
    var count = 0
    // Fails if nothing was written, because no buffer exists yet.
    guard rnp_output_memory_get_buf(handle.pointer, &buffer, &count, false) == RNP_SUCCESS else {
      return .init(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(start: buffer, count: count)
  }
}
