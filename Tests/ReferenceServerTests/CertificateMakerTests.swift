// SPDX-License-Identifier: Apache-2.0
import OpenSSLProgram
import Testing

@testable import ReferenceServer

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CertificateMakerTests {
  private static let longName = String(repeating: "a", count: 63) + ".token.example"

  @Test(
    "The openssl program verifies the server's certificate strictly",
    arguments: [
      ("token.example", "hostname"), (longName, "hostname"), ("192.0.2.7", "ip"), ("2001:db8::7", "ip"),
      ("::ffff:192.0.2.7", "ip"),
    ])
  func opensslVerifiesTheCertificate(host: String, kind: String) throws {
    let openssl = try OpenSSLProgram()
    let certificates = try CertificateMaker.make(hosts: [host])
    try openssl.write(Array(certificates.authority.utf8), to: "ca.pem")
    try openssl.write(Array(certificates.server.utf8), to: "server.pem")
    try openssl.write(Array(certificates.serverKey.utf8), to: "server.key")
    func verifies(_ kind: String, _ name: String) throws -> Bool {
      try openssl.run("verify -x509_strict -purpose sslserver -CAfile ca.pem -verify_\(kind) \(name) server.pem")
    }
    #expect(try verifies(kind, host))
    #expect(try verifies("hostname", "localhost"))
    #expect(try verifies("ip", "::1"))
    #expect(try !verifies("hostname", "other.example"))
    let key = try #require(try openssl.output(of: "pkey -in server.key -pubout"))
    #expect(try openssl.output(of: "x509 -in server.pem -pubkey -noout") == key)
  }

  @Test(
    "What is no host is refused",
    arguments: ["", "a b", "a,DNS:b", "a..b", "host\n", "x/y", "ä.example", "1::2::3"])
  func whatIsNoHostIsRefused(host: String) {
    #expect(throws: CertificateMaker.InvalidHostError.self) { try CertificateMaker.make(hosts: [host]) }
  }
}
