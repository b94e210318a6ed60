// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ServerTestSupport

/// A portal's callback endpoint: Python's HTTP server, started as a program.
final class CallbackSink: Sendable {
  struct Call: Decodable, Equatable {
    var path: String
    var headers: [String: String]
    var body: String
  }

  let url: String
  private let program: RunningProgram

  init() throws {
    guard let script = Bundle.module.path(forResource: "callback_sink", ofType: "py") else {
      throw Curl.CurlError(description: "callback_sink.py is not among the resources")
    }
    program = try RunningProgram("/usr/bin/env", ["python3", "-u", script])
    guard let port = program.nextLine() else { throw Curl.CurlError(description: "python3 did not start") }
    url = "http://127.0.0.1:\(port)"
  }

  deinit { program.send(SIGKILL) }

  /// The calls to a path, once there are `count` of them; fewer after 60 s.
  func calls(to path: String, count: Int) throws -> [Call] {
    let calls = try Curl()("\(url)/calls?path=\(path)&count=\(count)")
    return try JSONDecoder().decode([Call].self, from: Data(calls.body))
  }
}
