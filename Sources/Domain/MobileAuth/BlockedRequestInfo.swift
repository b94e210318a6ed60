// SPDX-License-Identifier: Apache-2.0
/// The reason why a request stays pending without being shown: its account is locked.
package struct BlockedRequestInfo: Sendable, Equatable {
  /// How the account is locked, such as "locked by the user, …".
  package var lock: String
  /// A description of the request for the log, from its verified contents.
  package var contents: String

  package init(lock: String, contents: String) {
    self.lock = lock
    self.contents = contents
  }
}
