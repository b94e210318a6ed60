// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Transfers made and timed by curl; its own start is not included.
struct Curl {
  struct Transfer {
    let path: String
    var fields: [(String, String)]
    var body: [UInt8]?

    init(_ path: String, _ fields: [(String, String)], body: [UInt8]? = nil) {
      (self.path, self.fields, self.body) = (path, fields, body)
    }
  }

  struct Timed {
    /// From the start of the transfer to the last byte of its response.
    let seconds: Double
    let isOnNewConnection: Bool
    let body: [UInt8]
  }

  let stage: Stage
  /// PEM file of the authority of the server's certificate.
  let authority: String
  /// `https://host:port`, the prefix of each path.
  let origin: String

  /// Runs all transfers in one process, one after the other, so that all but the first use an open connection.
  func run(_ transfers: [Transfer]) throws -> [Timed] {
    var lines: [String] = []
    func file(_ index: Int, _ kind: String) -> String { "\(stage.directory)/curl-\(index).\(kind)" }
    for (index, transfer) in transfers.enumerated() {
      if index > 0 { lines.append("next") }
      lines += [
        "silent", "cacert = \"\(authority)\"", "url = \"\(origin)\(transfer.path)\"",
        "output = \"\(file(index, "out"))\"",
        #"write-out = "%{time_total} %{num_connects} %{http_code}\n""#,
      ]
      lines += transfer.fields.map { "header = \"\($0.0): \($0.1)\"" }
      if let body = transfer.body {
        try Data(body).write(to: URL(filePath: file(index, "in")))
        lines += ["header = \"Content-Type: application/json\"", "data-binary = \"@\(file(index, "in"))\""]
      }
    }
    let script = file(0, "script")
    try lines.joined(separator: "\n").write(toFile: script, atomically: false, encoding: .utf8)
    let output = try Child.run("curl", ["--config", script], log: "\(stage.directory)/curl.log")
    let timings = String(decoding: output, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
    return try timings.enumerated().map { index, fields in
      guard fields.count == 3, let seconds = Double(fields[0]), fields[2].hasPrefix("2") else {
        throw BenchError("curl \(transfers[index].path): \(fields.joined(separator: " "))")
      }
      let body = try Data(contentsOf: URL(filePath: file(index, "out")))
      return Timed(seconds: seconds, isOnNewConnection: fields[1] != "0", body: [UInt8](body))
    }
  }
}
