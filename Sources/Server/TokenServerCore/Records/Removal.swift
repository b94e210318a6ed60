// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

package enum Disenrollment: Sendable {
  case keysAndPush
  case pushOnly
}

/// The removal of devices, profiles and enrollments, with the notifications of the devices.
extension ServerRecords {
  /// Deletes the device and all its profiles. Idempotent.
  package func deleteDevice(_ id: ClientID, now: Timestamp) throws -> Effects {
    var effects = Effects()
    guard try removeDevice(id, now: now) else { return effects }
    for profile in try profileNames(on: id) { effects.add(try deleteProfile(profile, now: now)) }
    effects.notify(id, DeviceEvent(.deviceRevoked))
    return effects
  }

  /// Deregisters the user on this device, even if the profile is unreadable: deletes the data and fails open
  /// transactions.
  package func deleteProfile(_ profile: ProfileName, now: Timestamp) throws -> Effects {
    try removeProfile(profile, now: now)
    var effects = try failOpenTransactions(of: profile, now: now)
    effects.notify(profile.clientID, DeviceEvent(.profileRevoked, profileID: profile.id.text))
    return effects
  }

  /// Deregisters the biometric authenticators of a profile. Idempotent.
  package func deregisterBiometrics(of name: ProfileName, now: Timestamp) throws -> Effects {
    var effects = Effects()
    guard let profile = try profile(name.id, on: name.clientID) else { return effects }
    for authenticator in profile.authenticators where authenticator.kind == .biometric {
      effects.add(
        try deregister(AuthenticatorName(profile: name, id: authenticator.id), byServer: true, now: now))
    }
    return effects
  }

  /// Removes an enrollment; the user may enroll again.
  /// - Parameter byDevice: whether the device itself requested it, so that it need not be notified with "disenrolled"
  ///   later.
  package func disenroll(
    _ profile: Profile, _ what: Disenrollment, byDevice: Bool = false, now: Timestamp
  ) throws -> Effects {
    let had = what == .pushOnly ? profile.pushToken != nil : profile.certificate != nil
    guard had else { return Effects() }
    try removePush(of: profile.name, byDevice: byDevice)
    if what == .keysAndPush { try removeKeys(of: profile.name) }
    var effects = try failOpenTransactions(of: profile.name, now: now)
    if !byDevice { effects.notify(profile.clientID, DeviceEvent(.profileRevoked, profileID: profile.id.text)) }
    return effects
  }
}
