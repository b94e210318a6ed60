// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The mobile authentication API, versions 3 and 4.
struct PortalRoutes: Sendable {
  let gate: PortalGate
  let starter: TransactionStarter

  private var configuration: ServerConfiguration { starter.configuration }

  func add(to router: Router<ServerContext>) {
    for version in PortalVersion.allCases {
      let base = "/oauth/api/\(version.rawValue)/authenticate"
      router.post(RouterPath("\(base)/user")) { request, context in
        let (portal, form) = try await admit(request, version)
        return Response.json(try await start(form, of: portal, version))
      }
      router.get(RouterPath("\(base)/user/:user/enabled")) { request, context in
        _ = try await admit(request, version)
        return try await options(for: UserID(context.path("user")), version)
      }
      router.get(RouterPath("\(base)/transaction/:id")) { request, context in
        _ = try await admit(request, version, evenIfDisabled: true)
        return try await result(of: context.path("id"))
      }
      router.delete(RouterPath("\(base)/transaction/:id")) { request, context in
        let (portal, _) = try await admit(request, version, evenIfDisabled: true)
        return try await cancel(context.path("id"), by: portal)
      }
      for sms in ["sms", "sms/resend"] {
        router.post(RouterPath("\(base)/user/:user/\(sms)")) { request, _ -> Response in
          _ = try await admit(request, version)
          throw ResponseError.smsDisabled
        }
      }
    }
    router.get("/oauth/api/v4/authenticate/user/:user/device/:device/enabled") { request, context in
      _ = try await admit(request, .v4)
      return try await types(for: UserID(context.path("user")), onDevice: ClientID(context.path("device")))
    }
    router.get("/oauth/api/v3/authenticate/user/:user/application/:app/enabled") { request, context in
      _ = try await admit(request, .v3)
      return try await types(for: UserID(context.path("user")), inApplication: context.path("app"))
    }
  }

  /// - Parameter evenIfDisabled: for requests that were started before mobile authentication was disabled.
  /// - Returns: the portal's client id and the request's form.
  private func admit(
    _ request: Request, _ version: PortalVersion, evenIfDisabled: Bool = false
  ) async throws -> (portal: String, Form) {
    let form = try await request.form(errorCode: ResponseError.badParameterCode)
    let portal = try await gate.admit(request, form: form, to: .mobileAuthentication)
    guard evenIfDisabled || configuration.mobileAuthentication.enabled else {
      throw ResponseError.mobileAuthenticationDisabled
    }
    guard version == .v4 || configuration.mobileAuthentication.pushEnrollmentMode != .multiple else {
      throw ResponseError.demandsVersion4
    }
    return (portal, form)
  }

  private func start(_ form: Form, of portal: String, _ version: PortalVersion) async throws -> PortalBody.Started {
    let order: StartRequest
    do { order = try StartRequest(form, of: portal, version, configuration) } catch { throw ResponseError(error) }
    let started: StartedTransaction
    do { started = try await starter.start(order) } catch let error as StartError { throw ResponseError(error) }
    let transaction = started.transaction
    return PortalBody.Started(
      transactionID: transaction.id, authMethod: transaction.method.rawValue,
      timeToLive: (transaction.expiresAt - transaction.createdAt).milliseconds,
      device: .init(name: started.deviceName, platform: configuration.mobileAuthentication.portalPlatformAlias))
  }

  private func types(for user: UserID, onDevice device: ClientID) async throws -> Response {
    let profile = try await gate.store.read { try $0.profile(of: user, on: device) }
    return enabledTypes(profile.map { [$0] } ?? [])
  }

  private func types(for user: UserID, inApplication application: String) async throws -> Response {
    let profiles = try await gate.store.read { try $0.profiles(of: user) }
    return enabledTypes(application == configuration.application.id ? profiles : [])
  }

  private func enabledTypes(_ profiles: [Profile]) -> Response {
    let usable = starter.usable
    let types = usable.types.filter { type in profiles.contains { $0.plan(for: type, usable) != nil } }
    return .json(PortalBody.EnabledTypes(enabled: types.map(\.name)))
  }

  private func options(for user: UserID, _ version: PortalVersion) async throws -> Response {
    let enrolled = try await gate.store.read { database in
      try database.profiles(of: user).filter(\.isEnrolledForPush).compactMap { profile in
        try database.readableDevice(profile.clientID).map { (profile, $0) }
      }
    }
    let (application, usable) = (configuration.application, starter.usable)
    switch version {
    case .v3:
      return options { type in
        enrolled.contains { profile, _ in profile.plan(for: type, usable) != nil }
          ? [PortalBody.Application(id: application.id, name: application.name)] : []
      }
    case .v4:
      return options { type in
        enrolled.filter { profile, _ in profile.plan(for: type, usable) != nil }.map { _, device in
          PortalBody.EnrolledDevice(
            appID: application.id, appName: application.name, deviceID: device.id.text, deviceName: device.name,
            platform: configuration.mobileAuthentication.portalPlatformAlias)
        }
      }
    }
  }

  /// The types that the user is enrolled for.
  private func options<Enrollment: Encodable>(
    _ enrollments: (ServerConfiguration.MobileAuthenticationType) -> [Enrollment]
  ) -> Response {
    let options = configuration.types.compactMap { type -> PortalBody.Option<Enrollment>? in
      let enrollments = enrollments(type)
      guard !enrollments.isEmpty else { return nil }
      return PortalBody.Option(
        type: type.name, method: type.method.rawValue.uppercased(), appsEnrolledForPush: enrollments)
    }
    return .json(PortalBody.EnabledOptions(enabled: options))
  }

  private func result(of id: String) async throws -> Response {
    guard let transaction = try await gate.store.read({ try $0.transaction(id.lowercased()) }) else {
      throw ResponseError.unknownTransaction
    }
    return .json(TransactionResult(transaction))
  }

  /// An extension: the portal cancels a request of its own. Idempotent; a request that has ended keeps its result.
  private func cancel(_ id: String, by portal: String) async throws -> Response {
    let now = starter.clock.now()
    let effects = try await gate.store.write { database -> Effects? in
      guard let transaction = try database.transaction(id.lowercased()),
        transaction.portal.isEmpty || transaction.portal == portal
      else { return nil }
      return try database.end(transaction, .canceled, now: now) ?? Effects()
    }
    guard let effects else { throw ResponseError.unknownTransaction }
    starter.announcer.announce(effects)
    return .noContent
  }
}
