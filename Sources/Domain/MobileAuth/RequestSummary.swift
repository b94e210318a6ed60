// SPDX-License-Identifier: Apache-2.0
/// What a pending list says about a request in addition to the portal's text, for display. Not verified.
public struct RequestSummary: Sendable, Equatable {
  /// The name of the request type.
  public var type: String?
  /// The options that the portal may show; nil if the request has no choice.
  public var choices: ChoiceChallenge?
  /// The origin of the login, as the server sends it. PingAM sends JSON.
  public var origin: String?
  /// Data that the login's journey added, as the server sends it.
  public var payload: String?

  public init(
    type: String? = nil, choices: ChoiceChallenge? = nil, origin: String? = nil, payload: String? = nil
  ) {
    self.type = type
    self.choices = choices
    self.origin = origin
    self.payload = payload
  }
}
