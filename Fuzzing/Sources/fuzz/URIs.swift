// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import ReferenceProtocol

@testable import PingAMAdapter
@testable import PrivacyIDEAAdapter
@testable import RegistrationURIs
@testable import ServerBackends
@testable import TokenDaemon

/// URIs that a user scans or pastes: activation, push and one-time-password URIs of all kinds.
func readURI(_ bytes: [UInt8]) {
  let text = String(decoding: bytes, as: UTF8.self)
  readActivation(text)
  if let uri = try? EnrollmentURI(text) { _ = (uri.label, uri.timeToLive + .seconds(1)) }
  require(Backends.kinds.count { $0.recognizes(text) } <= 1, "at most one kind of server recognizes a URI")
  _ = try? Backends.form(of: text)
  _ = Backends.carriesLastingSecret(text)
  guard let uri = try? RegistrationURI(text) else { return }
  _ = try? AccountPolicies(uri.policies)
  if let credential = uri.oath { makeCode(credential) }
}

private func readActivation(_ text: String) {
  if let uri = try? FleetURI(parsing: text) {
    require((try? FleetURI(parsing: uri.text)) == uri, "the URI of a fleet token survives being written")
  }
  guard let uri = try? ActivationURI(parsing: text) else { return }
  require((try? ActivationURI(parsing: uri.text)) == uri, "an activation URI survives being written")
}

private func makeCode(_ credential: OATHCredential) {
  let factor: UInt64 =
    switch credential.factor {
    case .counter(let counter): counter
    case .period(let period): UInt64(1_795_253_339 / period)
    }
  let algorithm = OneTimePassword.Algorithm(rawValue: credential.algorithm.rawValue) ?? .sha1
  let code = try? OneTimePassword.code(
    factor: factor, secret: credential.secret, algorithm: algorithm, digits: credential.digits)
  require(code?.utf8.count ?? credential.digits == credential.digits, "a code has its digits")
}
