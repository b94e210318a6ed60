// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import DisplayText
import TokenServerCore
import TokenServerStore

struct DeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Manage registered devices.", subcommands: [List.self, Delete.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the devices and their users.")

    @OptionGroup var options: CommonOptions

    private struct Entry: Encodable {
      struct User: Encodable {
        var user: String
        var profileID: String
        var mobileAuthentication: Bool
        var push: Bool
        var pin: PINState
        /// Wrong PIN attempts since the last correct PIN; nil without a PIN.
        var pinFailures: Int?
        /// The identifiers of the registered authenticators other than the PIN.
        var authenticators: [String]

        enum PINState: String, Encodable { case none, pending, active }

        enum CodingKeys: String, CodingKey {
          case user, push, pin, authenticators
          case pinFailures = "pin_failures"
          case profileID = "profile_id"
          case mobileAuthentication = "mobile_authentication"
        }
      }

      var deviceID: String
      var name: String
      var softwareVersion: String
      /// What the board says it is marked with.
      var boardSerial: String?
      var createdAtMs: Int64
      var lastLoginAtMs: Int64?
      var users: [User]

      enum CodingKeys: String, CodingKey {
        case name, users
        case deviceID = "device_id"
        case softwareVersion = "software_version"
        case boardSerial = "board_serial"
        case createdAtMs = "created_at_ms"
        case lastLoginAtMs = "last_login_at_ms"
      }

      init(_ device: Device, _ profiles: [Profile]) {
        deviceID = device.id.text
        name = device.name
        softwareVersion = device.softwareVersion
        boardSerial = device.boardSerial
        createdAtMs = device.createdAt.milliseconds
        lastLoginAtMs = device.lastLoginAt?.milliseconds
        users = profiles.map {
          User(
            user: $0.userID.text, profileID: $0.id.text, mobileAuthentication: $0.hasKeys, push: $0.isEnrolledForPush,
            pin: $0.hasPIN ? .active : $0.knowledge == nil ? .none : .pending,
            pinFailures: $0.hasPIN ? $0.knowledge?.failures : nil, authenticators: $0.authenticators.map(\.id).sorted())
        }
      }

      var text: String {
        let serial = boardSerial.map { ", board \($0.sanitized)" } ?? ""
        let lastLogin = lastLoginAtMs.map { ", last login \(moment(Timestamp($0)))" } ?? ""
        let lines = users.map { user in
          let enrollment = user.push ? "push" : user.mobileAuthentication ? "keys, no push" : "not enrolled"
          let pin =
            switch user.pin {
            case .none: ""
            case .pending: ", PIN not chosen yet"
            case .active: ", PIN, \(user.pinFailures ?? 0) wrong"
            }
          let others = user.authenticators.map { ", \($0)" }.joined()
          return "  \(user.user)  profile \(user.profileID), \(enrollment)\(pin)\(others)"
        }
        return (["\(deviceID)  \(name.sanitized) \(softwareVersion.sanitized)\(serial)\(lastLogin)"] + lines).joined(
          separator: "\n")
      }
    }

    func run() async throws {
      let (entries, unreadable) = try await options.open().read { database in
        let entries = try database.devices().map { Entry($0, try database.profiles(on: $0.id)) }
        return (entries, try database.unreadableRows(of: ["device", "profile"]))
      }
      unreadable.forEach(complain)
      try options.print(entries, entries.isEmpty ? "no devices" : entries.map(\.text).joined(separator: "\n"))
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete",
      abstract: "Deregister a device with all its users. The device wipes itself when it is notified.")

    @OptionGroup var options: CommonOptions
    @Argument(help: "The device_id.")
    var device: String

    private struct Deleted: Encodable {
      var deviceID: String

      enum CodingKeys: String, CodingKey { case deviceID = "device_id" }
    }

    func run() async throws {
      let session = try await options.open()
      let isThere = try await session.read { [device] in try $0.hasDevice(ClientID(device)) }
      guard isThere else { throw CommandError("there is no device \(device)") }
      let now = ServerClock.system.now()
      try await session.change { [device] in try $0.deleteDevice(ClientID(device), now: now) }
      try options.print(Deleted(deviceID: device), "deleted the device \(device)")
    }
  }
}
