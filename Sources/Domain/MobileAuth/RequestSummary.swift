// SPDX-License-Identifier: Apache-2.0
/// What a pending list says about a request in addition to the portal's text, for display. Not verified.
package struct RequestSummary: Sendable, Equatable {
  /// The name of the request type.
  package var type: String?
  /// The server's name of the kind of request, for programs; nil if it has none. PingAM: default, challenge, biometric.
  package var pushType: String?
  /// The numbers of which the login page shows one; nil unless the operator wants them shown.
  package var numbers: [Int]?
  /// The options that the portal may show; nil if the request has no choice.
  package var choices: ChoiceChallenge?
  /// The origin of the login, as the server sends it. PingAM sends JSON.
  package var origin: String?
  /// Data that the login's journey added, as the server sends it.
  package var payload: String?

  package init(
    type: String? = nil, pushType: String? = nil, numbers: [Int]? = nil, choices: ChoiceChallenge? = nil,
    origin: String? = nil, payload: String? = nil
  ) {
    self.type = type
    self.pushType = pushType
    self.numbers = numbers
    self.choices = choices
    self.origin = origin
    self.payload = payload
  }
}
