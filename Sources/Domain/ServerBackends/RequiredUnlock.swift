// SPDX-License-Identifier: Apache-2.0
/// How an enrollment URI of privacyIDEA or eduMFA wants the user to be verified before each use of the account. Servers
/// cannot check this.
package enum RequiredUnlock: String, Sendable {
  case pin, biometric, any

  /// An `app_force_unlock` that is not known.
  package struct UnknownUnlockError: Error {
    package let name: String
  }

  /// - Parameters:
  ///   - pin: the URI's parameter of this name; nil if it is missing.
  ///   - forced: the parameter `app_force_unlock`; nil if it is missing.
  /// - Returns: nil if the user need not be verified.
  package static func demanded(pin: String?, forced: String?) throws(UnknownUnlockError) -> RequiredUnlock? {
    guard let forced else { return pin?.lowercased() == "true" ? .pin : nil }
    guard let unlock = RequiredUnlock(rawValue: forced) else { throw UnknownUnlockError(name: forced) }
    return unlock
  }
}
