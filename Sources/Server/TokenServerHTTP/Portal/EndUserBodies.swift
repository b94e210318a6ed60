// SPDX-License-Identifier: Apache-2.0
/// Response bodies of the end-user API: camel case in version 4, snake case in version 3.
enum EndUserBody {
  struct DevicesV4: Encodable {
    struct Device: Encodable {
      var id: String
      var name: String
      var application: String
      var model: String
      var platform: String
      var osVersion: String?
      var createdAt: Int64
      var lastLogin: Int64?
      var tokenTypes: [String]
      var mobileAuthenticationEnabled: Bool
      var pushAuthenticationEnabled: Bool
    }

    var devices: [Device]
  }

  struct DevicesV3: Encodable {
    struct Device: Encodable {
      var id: String
      var name: String
      var application: String
      var platform: String
      var createdAt: Int64
      var lastLogin: Int64?
      var tokenTypes: [String]
      var mobileAuthenticationEnabled: Bool
      var pushAuthenticationEnabled: Bool

      enum CodingKeys: String, CodingKey {
        case id, name, application, platform
        case createdAt = "created_at"
        case lastLogin = "last_login"
        case tokenTypes = "token_types"
        case mobileAuthenticationEnabled = "mobile_authentication_enabled"
        case pushAuthenticationEnabled = "push_authentication_enabled"
      }
    }

    var devices: [Device]
  }

  struct Failure: Encodable {
    struct Detail: Encodable {
      struct Status: Encodable {
        var code: Int
        var message: String
        var details: String
      }

      var id: String
      var status: Status
    }

    var error: String
    var details: [Detail]?
  }

  /// The body of `POST …/devices`.
  struct BulkDelete: Decodable {
    var delete: [String]
  }
}
