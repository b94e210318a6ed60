// SPDX-License-Identifier: Apache-2.0

/// The identifier of a user, as portals name the user.
package struct UserID: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  package init(_ text: String) { self.text = text }

  package var description: String { text }
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
