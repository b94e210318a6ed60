// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

/// The files of the page, read once. No path of a request reaches the file system.
struct PageFiles: Sendable {
  struct File: Sendable {
    let type: String
    let bytes: [UInt8]
  }

  static let names = [
    "index.html": "text/html;charset=utf-8", "bench.css": "text/css;charset=utf-8", "main.js": script,
    "api.js": script, "button.js": script, "token.js": script, "portal.js": script, "timeline.js": script,
    "account.js": script, "tokens.js": script,
    "sound.js": script, "bench.svg": "image/svg+xml",
  ]
  private static let script = "text/javascript;charset=utf-8"

  private let files: [String: File]

  init(folder: String) throws {
    var files: [String: File] = [:]
    for (name, type) in Self.names {
      guard let data = FileManager.default.contents(atPath: "\(folder)/\(name)") else {
        throw BenchError("the page has no \(name) in \(folder)")
      }
      files["/" + name] = File(type: type, bytes: Array(data))
    }
    files["/"] = files["/index.html"]
    self.files = files
  }

  var paths: [String] { files.keys.sorted() }
  subscript(path: String) -> File? { files[path] }
}
