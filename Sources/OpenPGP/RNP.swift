import CRNP
import Glibc
import Secrets
import Synchronization

/// Sole owner of one librnp object, destroyed with its owner.
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

/// exit(3) destroys the static objects of librnp and Botan, and another thread may let go of its last key a moment
/// later. From then on nothing is destroyed one by one: all of it goes with the process.
private enum Library {
  private static let isOver = Mutex(false)
  /// Who may divert standard error.
  static let standardError = Mutex(())
  /// To be touched when the library has made something: what is registered last runs first.
  static let isWatched: Void = { _ = atexit { Library.isOver.withLock { $0 = true } } }()

  static func whileItLives(_ body: () -> Void) { isOver.withLock { if !$0 { body() } } }
}

/// Turns a result that can only mean misuse or exhaustion into an error. Results that judge input are judged where
/// the input is.
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

/// Lets librnp read `bytes` where they are. They must outlive the handle.
func input(reading bytes: UnsafeRawBufferPointer) throws(OpenPGPError) -> Handle {
  try Handle("rnp_input_from_memory", destroyedBy: rnp_input_destroy) { input in
    rnp_input_from_memory(&input, bytes.assumingMemoryBound(to: UInt8.self).baseAddress, bytes.count, false)
  }
}

/// What librnp writes, in memory. Zeroed before it is freed.
struct MemoryOutput: ~Copyable {
  private let handle: Handle
  var pointer: OpaquePointer { handle.pointer }

  /// - Parameter limit: bytes it takes before writing fails; 0 for no limit.
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
    // Fails when nothing was written: there is no buffer yet.
    guard rnp_output_memory_get_buf(handle.pointer, &buffer, &count, false) == RNP_SUCCESS else {
      return .init(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(start: buffer, count: count)
  }
}

/// Runs calls that are meant to fail, without what librnp says about that on standard error: it has no switch in Debian's
/// build. What others write there meanwhile follows when the calls have ended. Not for a hot path: one at a time.
func quietly<Result>(_ body: () -> Result) -> Result {
  Library.standardError.withLock { _ in
    var diversion = approval_rnp_divert()
    let result = body()
    approval_rnp_restore(&diversion)
    return result
  }
}
