import FoundationEssentials
import MobileAuth
import Secrets

/// What the token holds for one account at AM.
struct Mechanism: Sendable {
  /// Nothing of it is secret.
  struct Facts: Codable, Sendable, Equatable {
    /// Made here, and AM's name for this mechanism from the registration on.
    var uid: String
    var issuer: String
    var accountName: String
    var registrationURL: String
    var authenticationURL: String
    var cookie: String?
    /// AM's name for the person.
    var userID: String?
    /// AM's name for its record of this device.
    var resourceID: String?
    /// JSON.
    var policies: String?
    /// The policy with which a person has locked the account.
    var lockedBy: String?
    /// Where AM's push provider or delegate finds this device, as AM was told last …
    var deviceToken: String
    /// … and as it is to be told.
    var wantedDeviceToken: String?
    /// Digits of the PIN that the vault has for this account.
    var pinLength: Int?
    /// Whether that PIN has the secret of the one-time passwords, or will as soon as it is chosen; nil for no.
    var codesWantPIN: Bool?
    /// The registration that AM may or may not have taken.
    var registration: Registration?
  }

  struct Registration: Codable, Sendable, Equatable {
    var messageID: String
    var challenge: [UInt8]
  }

  var facts: Facts
  let secret: SharedSecret

  private static let version = SecretBytes(copying: Array("pingam 1".utf8))

  init(facts: Facts, secret: SharedSecret) {
    self.facts = facts
    self.secret = secret
  }

  /// - Returns: nil for an account that has lost its keys.
  init?(_ record: AccountRecord) throws(CustodyFault) {
    if record.secrets.count == 0 { return nil }
    let damaged = CustodyFault.damaged("the keys of account \(record.id)")
    guard let parts = record.secrets.parts(), parts.count == 3,
      SecretBytes.constantTimeEqual(parts[0], Self.version)
    else { throw damaged }
    let encoded = parts[1].withExposedSecret { Data($0) }
    do { facts = try JSONDecoder().decode(Facts.self, from: encoded) } catch { throw damaged }
    secret = SharedSecret(bytes: parts[2])
  }

  var encoded: SecretBytes {
    let facts: Data
    do { facts = try JSONEncoder().encode(self.facts) } catch { preconditionFailure("texts and numbers: \(error)") }
    return .joining([Self.version, SecretBytes(copying: facts), secret.bytes])
  }
}
