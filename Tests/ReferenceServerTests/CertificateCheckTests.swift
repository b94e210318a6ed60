// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ServerTestSupport
import Testing
import TokenServerCore

@testable import ReferenceServer

@Suite("A warning about the server's certificate", .timeLimit(.minutes(5)), .mayBlock) struct CertificateCheckTests {
  private let now = ServerClock.system.now()

  @Test("Comes for a host that it does not have, and after its end")
  func certificate() throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = directory + "/server.pem"
    for right in ["https://localhost:8443", "https://127.0.0.1", "https://[::1]:8443"] {
      #expect(CertificateCheck.warnings(about: file, at: right, now: now).isEmpty, "\(right)")
    }
    for wrong in ["https://auth.example.org", "https://127.0.0.2:1", "https://[::2]:8443", "https://"] {
      let warnings = CertificateCheck.warnings(about: file, at: wrong, now: now)
      #expect(warnings.count == 1 && warnings.first?.contains(" is not for ") == true, "\(wrong)")
    }
    let late = now + .seconds(100 * 366 * 86_400)
    let expired = CertificateCheck.warnings(about: file, at: "https://localhost", now: late)
    #expect(expired.count == 1 && expired.first?.contains("expired") == true)
    for none in ["/nonexistent", directory + "/config.toml"] {
      #expect(CertificateCheck.warnings(about: none, at: "https://a", now: now).isEmpty)
    }
  }

  @Test("Is printed with a new code, and at the start of the server, which names the address where it listens")
  func printed() async throws {
    let server = try TokenServerProcess(configuration: "issuer = \"https://auth.example.org:8443\"\n")
    let output = try run(
      BuiltProgram.path("token-server"), ["activation-code", "alice", "--directory", server.directory])
    #expect(output.errors.contains("server.pem is not for auth.example.org"))
    #expect(output.status == 0)
    try await eventually("the log has both") {
      server.log.contains("server.pem is not for auth.example.org") && server.log.contains("accepts connections at ")
        ? () : nil
    }
    #expect(server.stop() == 0)
  }
}
