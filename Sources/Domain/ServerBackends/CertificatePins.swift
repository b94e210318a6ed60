// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// The stored state of a server of which only the certificate pins are stored. Not secret.
package struct CertificatePins: Sendable {
  private enum Tag: UInt16 { case pins = 1 }

  /// Pins in the form of `ServerTrust.pins`.
  package var pins: [String]

  package init(_ pins: [String]) { self.pins = pins }

  /// Reads the former encoding, the joined pins, too.
  package init(_ record: TokenServerRecord) throws(StateStoreError) {
    let joined: SecretBytes?
    if SecretFields.isEncoding(record.secrets) {
      joined = SecretFields(encoded: record.secrets).map { $0[Tag.pins] ?? SecretBytes(copying: []) }
    } else {
      joined = record.secrets
    }
    guard let pins = joined?.texts() else { throw .corrupt(.certificatePins(of: record.id)) }
    self.pins = pins
  }

  package var encoded: SecretBytes {
    var fields = SecretFields()
    fields[Tag.pins] = .joining(pins)
    return fields.encoded
  }
}
