public import MobileAuth

/// Push tokens of privacyIDEA and eduMFA.
public enum PrivacyIDEA {
  /// Kind of `TokenServerRecord`.
  public static let kind = "privacyidea"

  /// Whether this is, or is meant to be, an enrolment URL of such a server.
  public static func recognises(_ text: String) -> Bool {
    do {
      _ = try EnrolmentURI(text)
      return true
    } catch { return error != .notAnEnrolment }
  }

  /// Digits of the PIN that a person types before each accept of this account; nil if nobody wants one.
  public static func pinLength(of record: AccountRecord) throws(CustodyFault) -> Int? {
    try PushCredentials(record).pinLength
  }

  /// The account as it is once the vault has a PIN of so many digits for it, to be typed before each accept.
  public static func with(pinLength: Int, _ record: AccountRecord) throws -> AccountRecord {
    var credentials = try PushCredentials(record)
    guard credentials.active != nil else { throw CustodyFault.unknown("keys of account \(record.id)") }
    credentials.pinLength = pinLength
    credentials.active?.wantsPIN = true
    return record.with(try credentials.encoded())
  }

  /// The certificate pins that the endpoint was enrolled with.
  public static func pins(of record: TokenServerRecord) throws(CustodyFault) -> [String] {
    try EndpointCredentials(record).pins
  }
}
