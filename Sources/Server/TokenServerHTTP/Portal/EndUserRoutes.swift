// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import Logging
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The end-user API, with which a self-service page shows and manages a user's devices. A delete responds with 204 even
/// if there was nothing to delete, so that the response does not disclose which users exist.
struct EndUserRoutes: Sendable {
  let gate: PortalGate
  let configuration: ServerConfiguration
  let clock: ServerClock
  let announcer: any Announcer

  func add(to router: Router<ServerContext>) {
    for version in PortalVersion.allCases {
      let devices = "/oauth/api/\(version.rawValue)/users/:user/devices"
      router.get(RouterPath(devices)) { request, context in
        try await gate.admit(request, to: .endUser)
        return try await list(UserID(context.path("user")), version)
      }
      router.delete(RouterPath(devices)) { request, context in
        try await gate.admit(request, to: .endUser)
        return try await change(UserID(context.path("user")), device: nil) { try $0.deleteProfile($1, now: $2) }
      }
      router.post(RouterPath(devices)) { try await bulkDelete($0, $1) }
      router.delete(RouterPath("\(devices)/:device")) { request, context in
        try await gate.admit(request, to: .endUser)
        return try await change(UserID(context.path("user")), device: ClientID(context.path("device"))) {
          try $0.deleteProfile($1, now: $2)
        }
      }
      addDisabling("disableMobileAuthentication", .keysAndPush, under: devices, to: router)
      addDisabling("disablePushAuthentication", .pushOnly, under: devices, to: router)
      router.post(RouterPath("\(devices)/:device/disableFingerprint")) { request, context in
        try await gate.admit(request, to: .endUser)
        return try await change(UserID(context.path("user")), device: ClientID(context.path("device"))) {
          try $0.deregisterBiometrics(of: $1, now: $2)
        }
      }
    }
  }

  private func addDisabling(
    _ name: String, _ what: Disenrollment, under devices: String, to router: Router<ServerContext>
  ) {
    router.post(RouterPath("\(devices)/:device/\(name)")) { request, context in
      try await gate.admit(request, to: .endUser)
      return try await change(UserID(context.path("user")), device: ClientID(context.path("device"))) {
        guard let profile = try $0.profile($1.id, on: $1.clientID) else { return Effects() }
        return try $0.disenroll(profile, what, now: $2)
      }
    }
  }

  /// - Parameter device: nil for all of the user's devices.
  private func change(
    _ user: UserID, device: ClientID?,
    _ change: @escaping @Sendable (Database, ProfileName, Timestamp) throws -> Effects
  ) async throws -> Response {
    let now = clock.now()
    let effects = try await gate.store.write { database in
      var effects = Effects()
      for profile in try database.profileNames(of: user) where device == nil || profile.clientID == device {
        effects.add(try change(database, profile, now))
      }
      return effects
    }
    announcer.announce(effects)
    return .noContent
  }

  /// Deletes each device independently; devices that could not be deleted are listed in the response.
  private func bulkDelete(_ request: Request, _ context: ServerContext) async throws -> Response {
    try await gate.admit(request, to: .endUser)
    let user = try UserID(context.path("user"))
    let order = try JSON.decode(EndUserBody.BulkDelete.self, from: await request.bytes())
    guard order.delete.count <= 1000 else { throw ResponseError.invalidRequest("At most 1000 devices at once.") }
    var failures: [EndUserBody.Failure.Detail] = []
    for device in order.delete {
      do { _ = try await change(user, device: ClientID(device)) { try $0.deleteProfile($1, now: $2) } } catch let error
        where error is UnstorableTextError || error is StorageUnavailableError
      {
        // For all of them: a wrong user, or nothing can be stored now.
        throw error
      } catch {
        announcer.deviceLog.about(nil).error("device \(device) of \(user) was not deleted: \(error)")
        failures.append(
          .init(
            id: device, status: .init(code: 500, message: "not_deleted", details: "The device could not be deleted.")))
      }
    }
    guard failures.isEmpty else {
      return .json(
        EndUserBody.Failure(error: "not_all_devices_deleted", details: failures), status: .internalServerError)
    }
    return .noContent
  }

  private func list(_ user: UserID, _ version: PortalVersion) async throws -> Response {
    let found = try await gate.store.read { database in
      try database.profiles(of: user).compactMap { profile in
        try database.readableDevice(profile.clientID).map { (profile, $0) }
      }
    }
    guard !found.isEmpty else {
      return .json(EndUserBody.Failure(error: "No devices found"), status: .notFound)
    }
    let platform = configuration.mobileAuthentication.portalPlatformAlias
    let application = configuration.application.name
    switch version {
    case .v4:
      return .json(
        EndUserBody.DevicesV4(
          devices: found.map { profile, device in
            .init(
              id: device.id.text, name: device.name, application: application, model: device.softwareID,
              platform: platform, osVersion: device.osVersion, createdAt: profile.createdAt.milliseconds,
              lastLogin: device.lastLoginAt?.milliseconds, tokenTypes: profile.tokenTypes,
              mobileAuthenticationEnabled: profile.hasKeys, pushAuthenticationEnabled: profile.isEnrolledForPush)
          }))
    case .v3:
      return .json(
        EndUserBody.DevicesV3(
          devices: found.map { profile, device in
            .init(
              id: device.id.text, name: device.name, application: application, platform: platform,
              createdAt: profile.createdAt.milliseconds, lastLogin: device.lastLoginAt?.milliseconds,
              tokenTypes: profile.tokenTypes,
              mobileAuthenticationEnabled: profile.hasKeys, pushAuthenticationEnabled: profile.isEnrolledForPush)
          }))
    }
  }
}

extension Profile {
  /// The kinds of tokens of the profile. Without a PIN it has only the short-lived access token; each kind of other
  /// authenticators has its own refresh tokens.
  fileprivate var tokenTypes: [String] {
    let kinds = Set(authenticators.map(\.kind))
    return ["access_token"] + (hasPIN ? ["refresh_token"] : []) + (kinds.contains(.biometric) ? ["fingerprint"] : [])
      + (kinds.contains(.custom) ? ["custom_authenticator"] : [])
  }
}
