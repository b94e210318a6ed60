// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// Runs the scripts, or the built-in verifier of the authenticators that have one.
package struct BuiltInVerifiers: ScriptRunner {
  private let scripts: any ScriptRunner

  package init(besides scripts: any ScriptRunner) { self.scripts = scripts }

  package func run(
    _ call: ScriptCall, of authenticator: ServerConfiguration.Authenticator
  ) async -> ScriptResult? {
    guard let scheme = authenticator.signature else { return await scripts.run(call, of: authenticator) }
    return SignatureVerifier.result(
      of: bytes(base64: call.data) ?? [], call.registrationData, call.authenticatorChallenge, scheme)
  }

  package func canRun(_ authenticator: ServerConfiguration.Authenticator) -> Bool {
    authenticator.signature != nil || scripts.canRun(authenticator)
  }
}
