/// What the server wants from the person.
public enum Challenge: Sendable, Equatable {
  /// A deliberate press.
  case confirmation
  /// The account's PIN, which the server judges, or this token where the server does not.
  case pin(PINChallenge)
  /// One of several options that the portal shows.
  case choice(ChoiceChallenge)
  /// Something that cannot be given here: nothing accepts, and the person can only deny.
  case impossible
}

extension Challenge {
  /// The PIN it wants, alone or after a choice.
  var pin: PINChallenge? {
    switch self {
    case .confirmation, .impossible: nil
    case .pin(let challenge): challenge
    case .choice(let challenge): challenge.pin
    }
  }
}

public struct PINChallenge: Sendable, Equatable {
  /// How many digits the PIN has.
  public var length: Int
  public var counts: FailureCounts

  public init(length: Int, counts: FailureCounts) {
    self.length = length
    self.counts = counts
  }
}

/// Wrong PINs of one account on this token, as its judge counts them.
public struct FailureCounts: Sendable, Equatable {
  /// So many end the account.
  public var max: Int
  /// So many there were since the last right one.
  public var previous: Int
  public var remaining: Int { max - previous }

  public init(max: Int, previous: Int) {
    self.max = max
    self.previous = previous
  }
}

extension FailureCounts: CustomStringConvertible {
  public var description: String { "\(remaining) of \(max) attempts left" }
}
