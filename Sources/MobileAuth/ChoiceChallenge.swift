import Secrets

/// "Which of these does the portal show you?" Whoever did not start the login cannot tell.
public struct ChoiceChallenge: Sendable, Equatable {
  /// 2 to 10, in the server's order.
  public let options: [String]
  /// Wrong choices; when none is left, the request is declined.
  public let counts: FailureCounts
  /// The account's PIN, typed after the choice, where it is wanted too.
  public let pin: PINChallenge?
  /// So often something may be typed that is none of the options, before the request is over here; nil for no limit.
  public let slipsAllowed: Int?

  /// - Returns: nil unless there are 2 to 10 different options.
  public init?(options: [String], counts: FailureCounts, pin: PINChallenge? = nil, slipsAllowed: Int? = nil) {
    guard (2...10).contains(options.count), Set(options).count == options.count else { return nil }
    self.options = options
    self.counts = counts
    self.pin = pin
    self.slipsAllowed = slipsAllowed
  }

  /// All options are numbers of this many digits, and are typed as they are; nil if they are chosen by position.
  private var numberLength: Int? {
    guard let length = options.first?.utf8.count, (1...4).contains(length),
      options.allSatisfy({ $0.utf8.count == length && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    else { return nil }
    return length
  }

  /// What has to be typed before Enter.
  public var digitCount: Int { numberLength ?? 1 }

  /// What to type for each option, in their order: the number itself, or its position from 1, the tenth being 0.
  public var keys: [String] {
    numberLength == nil ? options.indices.map { "\(($0 + 1) % 10)" } : options
  }

  /// "1 dark blue, 2 green", for whoever has to know what to type.
  public var explanation: String {
    numberLength == nil
      ? zip(keys, options).map { "\($0) \($1)" }.joined(separator: ", ") : options.joined(separator: ", ")
  }

  /// - Parameter digits: as typed. They are on the portal's screen, and no secret.
  /// - Returns: nil if no option is chosen so.
  func option(typed digits: PIN) -> String? {
    let typed = digits.digits.withExposedSecret { String(decoding: $0, as: UTF8.self) }
    return keys.firstIndex(of: typed).map { options[$0] }
  }
}

/// What a person has to type into the portal to finish a login that this token has accepted.
public struct PortalCode: Sendable, Equatable {
  /// ASCII digits, 1 to 8.
  public let digits: String
  /// What the portal's administrator says about it.
  public let message: String

  /// - Returns: nil unless the digits are some.
  public init?(digits: String, message: String) {
    guard (1...8).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    self.digits = digits
    self.message = message
  }
}
