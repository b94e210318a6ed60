// SPDX-License-Identifier: Apache-2.0
import HTTP
package import MobileAuth
import RegistrationURIs
package import ServerBackends

/// Push mechanisms of PingAM, with or without one-time passwords.
package struct PingAMBackend: ServerBackend {
  package static let kind = PingAM.kind
  package static let displayName = "PingAM"
  package static let uriPrefixes = ["pushauth://push/", "mfauth://totp/", "mfauth://hotp/"]
  package static let lastingSecretSchemes: Set<String> = ["pushauth", "mfauth"]
  package static let enrollmentOptions: Set<EnrollmentOption> = [.pin, .mailbox]

  let context: BackendContext
  let ingress: PushIngress

  package init(_ context: BackendContext) {
    self.context = context
    ingress = PushIngress(
      registry: context.store, messageStore: context.store, in: context.environment)
  }

  package static func recognizes(_ uri: String) -> Bool {
    RegistrationURI.recognizes(uri) && !RegistrationURI.isForOneTimePasswordsOnly(uri)
  }

  package static func form(of uri: String) throws -> EnrollmentForm {
    let uri = try RegistrationURI(uri)
    var form = EnrollmentForm()
    if uri.oath != nil { form.options.insert(.pin) }
    if uri.push != nil { form.options.insert(.mailbox) }
    form.pinDecision = "`pin_for_biometric` of `[push]` decides, or a policy of AM"
    return form
  }

  package func enroll(_ request: EnrollmentRequest) async throws -> AccountRecord {
    var settings = settings
    settings.codesWantPIN = request.asksPIN
    settings.deviceToken = request.mailbox
    let enrollment = PingAMEnrollment(
      registry: context.store, in: context.environment, settings: settings,
      pinPrompter: context.pinPrompter(for: request), isTamperedWith: isTamperedWith, otpSecretStore: otpSecretStore,
      progress: request.progress, makeHTTPTransport: context.makeEnrollmentTransport)
    return try await enrollment.enroll(request.uri, name: request.name, trust: context.trust(for: request))
  }

  package func client(
    for server: TokenServerRecord, accounts: [AccountRecord], in environment: TokenEnvironment
  ) throws -> (any TokenServerClient)? {
    try PingAMServerClient(
      server, accounts: accounts, http: try http(to: server, of: accounts),
      dependencies: PingAMServerClient.Dependencies(
        ingress: ingress, messageStore: context.store, settings: settings, pinVerifier: context.pinVerifier,
        isTamperedWith: isTamperedWith, in: environment,
        standIns: context.standIns(of: accounts, at: server, in: environment)))
  }

  func http(to server: TokenServerRecord, of accounts: [AccountRecord]) throws -> any HTTPTransport {
    let mechanisms = accounts.compactMap { try? Mechanism($0) }
    let addresses = mechanisms.flatMap { [$0.metadata.registrationURL, $0.metadata.authenticationURL] }
    return try context.http(to: server.id, at: addresses, pins: CertificatePins(server).pins)
  }

  /// The settings for enrollments, the same for all accounts.
  private var settings: PingAMEnrollment.Settings {
    var settings = PingAMEnrollment.Settings()
    settings.asksForPIN = context.settings.pinForBiometric ?? false
    settings.takesPINForBiometric = context.settings.pinForBiometric ?? true
    settings.showsNumbers = context.settings.showsNumbers
    settings.deviceName = context.settings.deviceName ?? settings.deviceName
    return settings
  }

  var isTamperedWith: @Sendable () -> Bool { { [store = context.store] in store.isTamperedWith } }

  /// The storage for the one-time password secret of an `mfauth://…` account during its enrollment. The audit chain
  /// gets the entry when the enrollment ends.
  private var otpSecretStore: OTPSecretStore {
    OTPSecretStore { [context] credential, pin, known, account in
      guard let server = try context.store.servers().first(where: { $0.id == account.server }) else {
        throw StateStoreError.notFound(.server(account.server))
      }
      let entry = pin.map { _ in
        context.environment.auditEntry(.pinSet, account: account.id, detail: "for one-time passwords, too")
      }
      try context.store(credential, of: account, at: server, under: pin, replacing: known, entry)
    } drop: { [store = context.store] account in
      try store.dropOneTimePasswords(of: account)
    }
  }
}
