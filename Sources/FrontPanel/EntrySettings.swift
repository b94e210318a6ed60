/// How digits are typed. A board profile may change these within the stated bounds.
public struct EntrySettings: Sendable, Equatable {
  public enum Feedback: String, Sendable, CaseIterable {
    /// The LED says that something has been typed, not how much.
    case entering
    /// It is also dark for an instant at each key that counts, the same for all: whoever sees it can count them.
    case eachKey = "each-key"
  }

  /// What was typed is wiped when no key is pressed for so long: 5 to 120 s.
  public var idle = Duration.seconds(30)
  public var feedback = Feedback.entering

  public init() {}
}
