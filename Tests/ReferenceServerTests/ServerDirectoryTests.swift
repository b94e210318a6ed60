// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import ReferenceServer

@Suite("The directory of a server", .timeLimit(.minutes(5)), .mayBlock) struct ServerDirectoryTests {
  private func reason(_ path: String, _ body: (ServerDirectory) throws -> Void) -> String {
    do { try body(ServerDirectory(path: path)) } catch { return "\(error)" }
    return "no error"
  }

  @Test("Only if it is missing, a new one is advised") func missing() {
    let missing = reason("/nonexistent/server") { _ = try $0.configuration() }
    #expect(missing.contains("there is no server in /nonexistent/server; create one with \"token-server init\""))
    let file = reason("/dev/null/server") { _ = try $0.configuration() }
    #expect(file == "cannot read /dev/null/server/config.toml: Not a directory")
  }

  @Test("What cannot be read is named with the reason") func unreadable() {
    let missing = reason("/") { _ = try $0.read("/nonexistent.toml") }
    #expect(missing == "cannot read /nonexistent.toml: No such file or directory")
    let folder = reason("/") { _ = try $0.read("/dev") }
    #expect(folder == "cannot read /dev: Is a directory")
    let lock = reason("/nonexistent") { _ = try $0.lockForServing() }
    #expect(lock == "cannot open /nonexistent/lock: No such file or directory")
  }
}
