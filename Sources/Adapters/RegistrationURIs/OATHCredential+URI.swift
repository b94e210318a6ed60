// SPDX-License-Identifier: Apache-2.0
import Secrets
import ServerBackends

extension OATHCredential {
  init(
    _ host: OATHHost, _ parameters: URIParameters, issuer: String, accountName: String
  ) throws(RegistrationURI.ParseError) {
    // Of the secret in such a URI, every code would be wrong.
    guard !parameters.hasName(beginningWith: "2step_") else { throw .twoStep }
    guard var octets = bytes(lenientBase32: try parameters.required("secret")), !octets.isEmpty else {
      throw .malformed("secret")
    }
    let secret = SecretBytes(copying: octets)
    cleanse(&octets)
    guard let algorithm = Algorithm(rawValue: (parameters["algorithm"] ?? "sha1").lowercased()) else {
      throw .malformed("algorithm")
    }
    let digits = Int(try parameters.number("digits", in: 6...8) ?? 6)
    guard digits != 7 else { throw .malformed("digits") }
    let factor: Factor =
      switch host {
      case .hotp: .counter(UInt64(try parameters.number("counter", in: 0...Int64.max) ?? 0))
      case .totp: .period(try parameters.number("period", in: 1...Int64.max) ?? 30)
      }
    self.init(
      issuer: issuer, accountName: accountName, secret: secret, algorithm: algorithm, digits: digits, factor: factor,
      resourceID: try parameters.text("oid"))
  }
}

/// The host part of a URI for one-time passwords.
enum OATHHost: String { case hotp, totp }
