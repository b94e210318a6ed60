/// Why a request waits without being put to a person: its account is locked.
public struct Withholding: Sendable, Equatable {
  /// How the account is locked: "locked by hand, …".
  public var lock: String
  /// What the request is, for the log, as its adapter verified it.
  public var contents: String

  public init(lock: String, contents: String) {
    self.lock = lock
    self.contents = contents
  }
}
