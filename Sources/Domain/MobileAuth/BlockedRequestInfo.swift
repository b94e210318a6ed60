// SPDX-License-Identifier: Apache-2.0
/// The reason why a request stays pending without being shown: its account is locked.
public struct BlockedRequestInfo: Sendable, Equatable {
  /// How the account is locked, such as "locked by hand, …".
  public var lock: String
  /// A description of the request for the log, from its verified contents.
  public var contents: String

  public init(lock: String, contents: String) {
    self.lock = lock
    self.contents = contents
  }
}
