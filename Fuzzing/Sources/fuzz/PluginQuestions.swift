// SPDX-License-Identifier: Apache-2.0
import CPlugIn
import Glibc

/// Memory that ends at a page without access: the parser is C, and a byte read or written behind its end must not stay
/// unnoticed.
private final class GuardedMemory: Sendable {
  private nonisolated(unsafe) let start: UnsafeMutableRawPointer
  private let capacity: Int

  init(capacity wanted: Int) {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    capacity = (wanted + page - 1) / page * page
    guard let memory = mmap(nil, capacity + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      memory != MAP_FAILED, mprotect(memory + capacity, page, PROT_NONE) == 0
    else { fatalError("no memory") }
    start = memory
  }

  /// The last `count` bytes.
  func last(_ count: Int) -> UnsafeMutableRawPointer { start + capacity - count }
}

private let longest = plug_in_longest_line
private let lineMemory = GuardedMemory(capacity: longest + 4096)
private let questionMemory = GuardedMemory(capacity: MemoryLayout<plug_in_question>.stride)

/// The question to a reader, which all readers parse with this function.
func readPluginQuestion(_ bytes: [UInt8]) {
  guard bytes.count <= longest + 4096 else { return }
  let line = lineMemory.last(bytes.count)
  bytes.withUnsafeBytes { if let base = $0.baseAddress { line.copyMemory(from: base, byteCount: $0.count) } }
  let question = questionMemory.last(MemoryLayout<plug_in_question>.stride)
    .bindMemory(to: plug_in_question.self, capacity: 1)
  guard plug_in_parse(line.bindMemory(to: CChar.self, capacity: bytes.count), bytes.count, question) else { return }
  require(bytes.count <= longest, "a question is one line")
  let size = question.pointee.registration_size
  require(size <= plug_in_largest_registration, "what is kept has a limit")
  if let registration = question.pointee.registration {
    require(registration >= line && registration + size <= line + bytes.count, "what is kept is in the line")
  } else {
    require(size == 0, "what is not there has no size")
  }
  let end = withUnsafeBytes(of: question.pointee.server) { $0.firstIndex(of: 0) }
  require(end != nil && end != 0, "the server has a name with an end")
}
