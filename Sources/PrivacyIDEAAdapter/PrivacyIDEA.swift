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

  /// Digits of the PIN that a person types before each accept of this account; nil if its token server wants none.
  public static func pinLength(of record: AccountRecord) throws(CustodyFault) -> Int? {
    try PushCredentials(record).pinLength
  }

  /// The certificate pins that the endpoint was enrolled with.
  public static func pins(of record: TokenServerRecord) throws(CustodyFault) -> [String] {
    try EndpointCredentials(record).pins
  }
}
