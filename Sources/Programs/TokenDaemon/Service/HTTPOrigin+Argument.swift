// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import HTTP

extension HTTPOrigin {
  /// - Parameter text: an argument of a command.
  init(argument text: String) throws(CommandError) {
    guard let origin = HTTPOrigin(text) else {
      throw CommandError(.usage, "not an origin, https://HOST or https://HOST:PORT: \(text.prefix(256))")
    }
    self = origin
  }
}
