// SPDX-License-Identifier: Apache-2.0
import OATHAdapter
import PingAMAdapter
import PrivacyIDEAAdapter
import ReferenceAdapter
package import ServerBackends

extension Backends {
  /// All kinds of servers. No other file of this module imports the module of a kind.
  package static let kinds: [any ServerBackend.Type] = [
    ReferenceBackend.self, PrivacyIDEABackend.self, OATHBackend.self, PingAMBackend.self,
  ]
}
