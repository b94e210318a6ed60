// SPDX-License-Identifier: Apache-2.0
import Foundation
import NIOSSL
import ServerTestSupport
import Testing

@testable import ReferenceServer

@Suite("TLS to portals", .timeLimit(.minutes(5)), .mayBlock) struct CallbackTLSTests {
  @Test("Has version 1.2 at least") func version() {
    #expect(CallbackTLS(.makeClientConfiguration()).settings.minimumTLSVersion == .tlsv12)
  }

  @Test("Works once the system has certificate authorities") func authorities() throws {
    let file = FileManager.default.temporaryDirectory.path + "/authorities-\(UUID()).pem"
    defer { try? FileManager.default.removeItem(atPath: file) }
    var settings = TLSConfiguration.makeClientConfiguration()
    settings.trustRoots = .file(file)
    let tls = CallbackTLS(settings)
    let error = #expect(throws: CallbackTLS.UnusableAuthoritiesError.self) { try tls.context() }
    #expect(error?.description.contains("ca-certificates") == true)
    let server = try TokenServerProcess()
    try FileManager.default.copyItem(atPath: server.directory + "/ca.pem", toPath: file)
    let made = try tls.context()
    #expect(try tls.context() === made)
  }
}
