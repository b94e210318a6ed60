import JSONValues
import MobileAuth

/// What must hold for an account to be used, as AM's administrator wrote it into the registration.
public struct AccountPolicies: Sendable, Equatable {
  public enum Flaw: Error, Equatable, Sendable, CustomStringConvertible {
    case malformed
    public var description: String { "the account's policies are not JSON as AM writes it" }
  }

  static let biometricAvailable = "biometricAvailable"
  static let deviceTampering = "deviceTampering"

  /// The vendor's number for a registration that a policy forbids, as its SDK for iOS has it.
  public static let violationNumber = 6_100_005

  /// By name. Those that this token does not know decide nothing.
  private let policies: [String: JSONValue]

  /// - Parameter json: an object of objects, or nil.
  init(_ json: String?) throws(Flaw) {
    guard let json else {
      policies = [:]
      return
    }
    guard case .object(let policies)? = JSONValue(parsing: Array(json.utf8)),
      policies.values.allSatisfy({ if case .object = $0 { true } else { false } })
    else { throw .malformed }
    self.policies = policies
  }

  var wantsPIN: Bool { policies[Self.biometricAvailable] != nil }

  var unknownNames: [String] {
    policies.keys.filter { ![Self.biometricAvailable, Self.deviceTampering].contains($0) }.sorted()
  }

  /// For whoever enrols.
  static func note(onUnknown name: String) -> String {
    "the policy \(name.forPeople) is not known here, and decides nothing"
  }

  var names: [String] { policies.keys.sorted() }

  /// What makes a policy hold again; nil for those that this token does not know.
  static func remedy(for policy: String) -> String? {
    switch policy {
    case biometricAvailable: "choose a PIN with `approval-token pin change`, on a board with a keypad"
    case deviceTampering: "it wants an audit chain that nobody but this token wrote, see `approval-token log --verify`"
    default: nil
    }
  }

  /// The first policy that does not hold. Only what a policy is about is asked for: that may take long.
  /// - Parameters:
  ///   - hasPIN: the account has one, with which this token tells its person.
  ///   - isTamperedWith: the token's own checks found it changed by somebody else.
  func violation(hasPIN: () -> Bool, isTamperedWith: () -> Bool) -> String? {
    if wantsPIN, !hasPIN() { return Self.biometricAvailable }
    if let policy = policies[Self.deviceTampering] {
      let allowed: Double =
        switch policy["score"] {
        case .integer(let number): Double(number)
        case .fraction(let number): number
        default: 1
        }
      if (isTamperedWith() ? 1 : 0) >= allowed { return Self.deviceTampering }
    }
    return nil
  }
}
