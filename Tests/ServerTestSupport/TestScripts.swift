// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation

/// The scripts of a custom authenticator in the folder of a server. Each stores its input and prints what the test
/// chose.
package struct TestScripts: Sendable {
  package let folder: String

  /// - Parameter folder: created if necessary.
  package init(in folder: String) throws {
    self.folder = folder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for step in ["register", "authenticate"] {
      try write(step, "#!/bin/sh\ncat >>calls; echo >>calls\ncat answer\n")
    }
    try answer(status: 2000)
  }

  /// Writes an executable.
  package func write(_ step: String, _ text: String, mode: Int = 0o755) throws {
    try writeExecutable(text, to: "\(folder)/\(step)", mode: mode)
  }

  /// Chooses the output of the next runs.
  package func answer(_ text: String) throws {
    try text.write(toFile: "\(folder)/answer", atomically: true, encoding: .utf8)
  }

  package func answer(status: Int, data: String = "d", registrationData: String? = nil) throws {
    let stored = registrationData.map { #","registration_data":"\#($0)""# } ?? ""
    try answer(#"{"status":\#(status),"data":"\#(data)"\#(stored)}"#)
  }

  /// The inputs so far.
  package func calls() throws -> [[String: any Sendable]] {
    let text = (try? String(contentsOfFile: "\(folder)/calls", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap {
      (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: any Sendable]
    }
  }
}

/// Writes a program by another process. A descriptor for writing in this process would be inherited by the programs
/// that other tests start at that moment, and as long as it is open the file cannot be run (`ETXTBSY`).
package func writeExecutable(_ text: String, to path: String, mode: Int = 0o755) throws {
  let script = #"printf '%s' "$1" >"$2.new" && chmod "$3" "$2.new" && mv "$2.new" "$2""#
  let output = try run("/bin/sh", ["-c", script, "sh", text, path, String(mode, radix: 8)])
  guard output.status == 0 else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path]) }
}
