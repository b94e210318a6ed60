// SPDX-License-Identifier: Apache-2.0

/// One login: asked by the portal, shown by the LED, approved with the button.
struct ApprovalRound {
  /// Seconds. The panel accepts a press 0.5 s after the LED became blue (the guard time), and needs 0.8 s for a hold.
  static let (guardTime, hold) = (0.6, 0.85)

  let token: Token
  let tokenID: String
  let portal: Connection
  let site: Site
  let callback: String

  /// Waits until the token is idle.
  init(_ token: Token, at server: TokenServer, _ site: Site, callback: String) throws {
    self.token = token
    tokenID = try server.deviceID(of: token.user)
    portal = Connection(to: site)
    self.site = site
    self.callback = callback
    try token.control.followLED().waitForLED("idle, connected", isLit: false)
  }

  /// Seconds from the portal's response to the LED, and from the release of the button to green.
  struct Times {
    let toLED: Double
    let toGreen: Double
  }

  /// Ends when the token is idle again.
  /// - Parameter note: called before the portal asks, when the LED shows the request, before the button is held, and
  ///   when the LED shows the confirmation.
  func run(noting note: () throws -> Void = {}) throws -> Times {
    try note()
    let led = try token.control.followLED()
    let response = portal.exchange(site.ask(token.user, on: tokenID, callback: callback))
    let asked = Instant.now
    guard site.transaction(in: response) != nil else { throw BenchError("the portal was refused") }
    let blue = try led.waitForLED("confirmation wanted")
    try note()
    pause(seconds: Self.guardTime)
    try note()
    let released = try token.control.hold(seconds: Self.hold)
    let green = try led.waitForLED("approved")
    try note()
    try led.waitForLED("idle, connected", isLit: false)
    return Times(toLED: blue - asked, toGreen: green - released)
  }
}
