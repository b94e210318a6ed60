// SPDX-License-Identifier: Apache-2.0

/// The identifier of a user, as portals name the user. Two are equal if their bytes are, as in the database: Swift
/// compares texts by characters, so that "é" as one or as two code points would be one user here and two there.
package struct UserID: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  package init(_ text: String) { self.text = text }

  package var description: String { text }

  package static func == (one: UserID, other: UserID) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

  package func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }
}

/// The identifier of a device: its OAuth `client_id`, and the portals' `device_id`.
package struct ClientID: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  package init(_ text: String) { self.text = text }

  package var description: String { text }
}

/// The identifier of a user's profile on a device; unique on one device only.
package struct ProfileID: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  package init(_ text: String) { self.text = text }

  package var description: String { text }
}
