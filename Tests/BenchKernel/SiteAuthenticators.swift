// SPDX-License-Identifier: Apache-2.0

/// What the user of a `Site` can register besides the PIN: settings of both programs.
struct SiteAuthenticators: Sendable {
  /// A line of the server's `[application]`.
  let switches: String
  /// Tables of the server's configuration, below the folder of the site.
  let tables: @Sendable (_ folder: String) -> String
  /// Files by their names in the folder of the site. Scripts are executable.
  let files: @Sendable (_ folder: String) -> [(String, String)]

  /// A plug-in that answers at once, and scripts that accept everything. Requests of the type `transfer` require it, or
  /// the PIN.
  static let instantBadge = SiteAuthenticators(
    switches: "custom_authenticators = true",
    tables: { folder in
      """
      [[authenticator]]
      id = "badge"
      name = "Badge"
      kind = "custom"
      scripts = "\(folder)/scripts"
      [[type]]
      name = "transfer"
      method = "push_with_custom_authenticator"
      request_expires_in = 600
      """
    },
    files: { folder in
      let script = "#!/bin/sh\ncat >/dev/null\necho '{\"status\":2000,\"data\":\"\"}'"
      return [
        (
          "authenticators.d/badge.toml",
          "authenticator = \"badge\"\ncommand = [\"/bin/sh\", \"\(folder)/plug-in\"]\nhold = true"
        ),
        ("plug-in", "read -r question\necho '{\"data\":\"AQ==\"}'"),
        ("scripts/register", script), ("scripts/authenticate", script),
      ]
    })
}
