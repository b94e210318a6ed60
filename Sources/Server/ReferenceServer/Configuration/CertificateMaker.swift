// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import ReferenceProtocol
import SwiftASN1
import TokenServerCore
import X509

/// Creates a private certificate authority and one server certificate, so that a new installation has TLS without an
/// external authority. Tokens authenticate the server by its key's pin; portals need `ca.pem`.
struct CertificateMaker {
  /// Certificates and keys in PEM.
  struct Certificates {
    let authority: String
    let authorityKey: String
    let server: String
    let serverKey: String
  }

  /// - Parameter hosts: DNS names or IP addresses in addition to localhost, 127.0.0.1 and ::1.
  static func make(hosts: [String], now: Date = Date()) throws -> Certificates {
    let authorityKey = P256.Signing.PrivateKey()
    let authorityName = try DistinguishedName { CommonName("Approval Token server CA") }
    let authority = try Certificate(
      version: .v3, serialNumber: .init(), publicKey: .init(authorityKey.publicKey),
      notValidBefore: now - hour, notValidAfter: now + 3650 * day, issuer: authorityName, subject: authorityName,
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
        Critical(KeyUsage(keyCertSign: true, cRLSign: true))
      },
      issuerPrivateKey: .init(authorityKey))
    let serverKey = P256.Signing.PrivateKey()
    let server = try Certificate(
      version: .v3, serialNumber: .init(), publicKey: .init(serverKey.publicKey),
      notValidBefore: now - hour, notValidAfter: now + 825 * day, issuer: authorityName,
      subject: try DistinguishedName { CommonName(hosts.first ?? "localhost") },
      extensions: Certificate.Extensions {
        Critical(BasicConstraints.notCertificateAuthority)
        Critical(KeyUsage(digitalSignature: true))
        try ExtendedKeyUsage([.serverAuth])
        SubjectAlternativeNames(try hosts.map(generalName) + localNames)
      },
      issuerPrivateKey: .init(authorityKey))
    return Certificates(
      authority: try authority.serializeAsPEM().pemString, authorityKey: authorityKey.pemRepresentation,
      server: try server.serializeAsPEM().pemString, serverKey: serverKey.pemRepresentation)
  }

  struct InvalidHostError: Error, CustomStringConvertible {
    let host: String
    var description: String { "\"\(host)\" is neither a host name nor an IP address" }
  }

  private static let hour: TimeInterval = 3600
  private static let day: TimeInterval = 86_400

  private static let localNames: [GeneralName] = [
    .dnsName("localhost"),
    .ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1])),
    .ipAddress(ASN1OctetString(contentBytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
  ]

  private static func generalName(_ host: String) throws -> GeneralName {
    if let address = IPAddressBytes.parse(host) { return .ipAddress(ASN1OctetString(contentBytes: address[...])) }
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    let isName =
      host.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count)
          && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
      }
    guard isName else { throw InvalidHostError(host: host) }
    return .dnsName(host)
  }
}
