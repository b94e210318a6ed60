// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc

/// The output of a process on one stream, line by line.
package final class Transcript: Sendable {
  fileprivate struct Text: Sendable {
    var lines: [String] = []
    var unfinished: [UInt8] = []
    var hasEnded = false
    /// Of the read that failed; 0 if the process closed the stream.
    var fault: Int32 = 0
  }

  private let name: String
  private let descriptor: Int32
  private let text = Observed(Text())

  /// - Parameter descriptor: read to its end and then closed.
  package init(_ name: String, reading descriptor: Int32) {
    self.name = name
    self.descriptor = descriptor
    Thread.detachNewThread { [text] in
      while !text.value.hasEnded {
        if isReadable(descriptor, within: nil) { text.change { $0.read(descriptor) } }
      }
      close(descriptor)
    }
  }

  /// What the process has written by now, although the thread that reads it may not have had the processor since.
  package var lines: [String] {
    // The number may be another file's after the end: that has no effect.
    if isReadable(descriptor, within: .zero) { text.change { $0.read(descriptor) } }
    return text.value.lines
  }

  /// The number of lines: a position for later waits.
  package var mark: Int { lines.count }

  /// The whole text, once the process has closed the stream.
  package func whole(within limit: Duration = patience) async throws -> String {
    guard let whole = await text.first(within: limit, { $0.hasEnded ? $0.lines.joined(separator: "\n") : nil }) else {
      throw OutputTimeoutError(description: "the end of \(name)")
    }
    return whole
  }

  /// Waits for a line from position `mark` on that contains all of `parts`.
  @discardableResult
  package func line(
    with parts: String..., from mark: Int = 0, within limit: Duration = patience
  ) async throws -> String {
    let found: String?? = await text.first(within: limit) { text in
      if let line = text.lines.dropFirst(mark).first(where: { line in parts.allSatisfy { line.contains($0) } }) {
        return .some(line)
      }
      return text.hasEnded ? .some(nil) : nil
    }
    if let line = found ?? nil { return line }
    let tail = lines.suffix(12).map { "\n    \($0)" }.joined()
    let (hasEnded, fault) = (text.value.hasEnded, text.value.fault)
    let end = fault == 0 ? "its end" : "the error \(String(cString: strerror(fault)))"
    let time = hasEnded ? "before \(end)" : "within \(limit)"
    throw OutputTimeoutError(description: "a line with \(parts) on \(name) \(time). Its last lines:\(tail)")
  }

  /// The first line from `mark` on that satisfies `isWanted`; nil if the stream ends.
  package func first(
    from mark: Int, within limit: Duration, _ isWanted: @escaping @Sendable (String) -> Bool
  ) async -> String? {
    let found: String?? = await text.first(within: limit) { text in
      if let line = text.lines.dropFirst(mark).first(where: isWanted) { return .some(line) }
      return text.hasEnded ? .some(nil) : nil
    }
    return found ?? nil
  }

  package func count(of part: String) -> Int { lines.count { $0.contains(part) } }
}

extension Transcript.Text {
  /// Reads what is there, without waiting for more.
  fileprivate mutating func read(_ descriptor: Int32) {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while !hasEnded, isReadable(descriptor, within: .zero) {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      fault = count < 0 ? errno : 0
      take(chunk[..<max(count, 0)])
    }
  }

  /// - Parameter bytes: empty at the end.
  fileprivate mutating func take(_ bytes: ArraySlice<UInt8>) {
    unfinished += bytes
    while let end = unfinished.firstIndex(of: UInt8(ascii: "\n")) {
      lines.append(String(decoding: unfinished[..<end], as: UTF8.self))
      unfinished.removeSubrange(...end)
    }
    guard bytes.isEmpty else { return }
    if !unfinished.isEmpty { lines.append(String(decoding: unfinished, as: UTF8.self)) }
    unfinished = []
    hasEnded = true
  }
}
