// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Programs of this package: the build puts them beside the tests' own, or that in a directory below.
package enum BuiltProgram {
  package struct MissingProgramError: Error, CustomStringConvertible {
    package let description: String
  }

  package static func path(_ name: String) throws -> String {
    for folder in [directory, directory.dropLast()] {
      let path = "/" + (folder + [name[...]]).joined(separator: "/")
      if access(path, X_OK) == 0 { return path }
    }
    throw MissingProgramError(
      description: "there is no program \(name) in /\(directory.joined(separator: "/")): build it first")
  }

  /// Of the tests' own program, in its parts.
  package static let directory: ArraySlice<Substring> = {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &path, path.count)
    let own = String(decoding: path[..<max(length, 0)].map(UInt8.init(bitPattern:)), as: UTF8.self)
    return own.split(separator: "/").dropLast()
  }()
}

/// Waits until the descriptor can be read without blocking, also if it is at its end.
/// - Parameter limit: nil waits for any time.
/// - Returns: false after `limit`.
package func isReadable(_ descriptor: Int32, within limit: Duration?) -> Bool {
  let deadline = limit.map { ContinuousClock.now + $0 }
  var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  while true {
    let left = deadline.map { max(.zero, $0 - .now) / .milliseconds(1) }
    let count = poll(&wanted, 1, left.map { Int32($0.rounded(.up)) } ?? -1)
    if count >= 0 || errno != EINTR { return count > 0 }
  }
}
