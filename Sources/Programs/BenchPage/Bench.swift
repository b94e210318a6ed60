// SPDX-License-Identifier: Apache-2.0
import JSONValues

/// The bench: a token server, tokens with the simulated board, each with its user, and a portal.
actor Bench {
  static let pin = "13589"
  static let users = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"]

  /// What runs already, and what the bench starts.
  struct Plan: Sendable {
    /// The folder with the programs.
    var programs: String
    /// For everything of this run.
    var folder: String
    /// One for each token.
    var users: [String]
    /// `https://HOST[:PORT]` of a token server that runs already, with the credentials of a portal and their file.
    var server: (url: String, account: PortalFile, file: String)?
    /// The state directory of a token that runs already.
    var state: String?
    /// Sets back the wall clock of a token; nil if there is none.
    var clockLibrary: String?
  }

  let feed = Feed()
  let tokens: [BenchToken]
  private let plan: Plan
  /// Distinguishes this bench from others at the same address.
  private let run = wallClockMilliseconds()
  /// Nil if another token server is used.
  private let server: ServerProgram?
  private var url = ""
  private var pictures = 0
  private var portal: Portal?
  /// The last start or end of the token server.
  private var changing: Task<Void, any Error>?

  init(_ plan: Plan) {
    self.plan = plan
    let program = plan.programs + "/approval-token"
    server =
      plan.server == nil ? ServerProgram(program: plan.programs + "/token-server", folder: plan.folder) : nil
    let feed = feed
    tokens = plan.users.enumerated().map { index, user in
      let token =
        if let state = plan.state {
          TokenProgram(program: program, folder: plan.folder, attachedTo: state)
        } else {
          TokenProgram(
            program: program, folder: plan.folder, name: "token-\(index)", clockLibrary: plan.clockLibrary)
        }
      return BenchToken(index, of: user, token, feed: feed)
    }
  }

  // MARK: Start and end

  /// - Throws: if a program that should run already cannot be used.
  func check() async throws {
    for token in tokens where !token.program.isOwn { try await token.program.start() }
    guard let (url, account, file) = plan.server else { return }
    let portal = Portal(url: url, account: account, curlFile: file, callback: "")
    for user in plan.users { try await portal.check(of: user) }
  }

  /// - Parameter callback: where the token server announces the end of a request.
  func start(callback: String) async throws {
    async let ready: Void = onAllTokens { token in
      try await token.program.start()
      token.follow()
    }
    let portal = try await startServer(callback: callback)
    try await ready
    // What runs already is changed only by what is done on the page.
    if let server, plan.state == nil {
      try await onAllTokens { [plan] token in
        if token.user != plan.users[0] { _ = try await server.administer("user", "add", token.user) }
        try await token.enroll(try await server.enrollmentURI(of: token.user), pin: Self.pin)
      }
    }
    self.portal = portal
    try await onAllTokens { await $0.use(portal) }
    await publishPrograms()
  }

  private func startServer(callback: String) async throws -> Portal {
    if let (url, account, file) = plan.server {
      self.url = url
      return Portal(url: url, account: account, curlFile: file, callback: callback)
    }
    guard let server else { throw BenchError("no token server") }
    try await server.create()
    try await server.start()
    url = await server.url
    _ = try await server.administer("user", "add", plan.users[0])
    return try await server.addPortal(callback: callback)
  }

  private func onAllTokens(_ body: @escaping @Sendable (BenchToken) async throws -> Void) async throws {
    try await withThrowingTaskGroup { group in
      for token in tokens { group.addTask { try await body(token) } }
      try await group.waitForAll()
    }
  }

  /// Ends the programs that the bench has started, within some seconds.
  func end() async {
    feed.close()
    async let serverEnd: Void? = server?.stop()
    try? await onAllTokens { await $0.end() }
    await serverEnd
  }

  private func publishPrograms() async {
    let isRunning = await server?.isRunning ?? true
    feed.publish(
      .programs,
      .object([
        "server": .bool(isRunning), "own_server": .bool(server != nil), "own_token": .bool(plan.state == nil),
        "run": .integer(run), "portal_url": .text(url), "users": .list(plan.users.map { .text($0) }),
        "pin": server != nil && plan.state == nil ? .text(Self.pin) : .null, "ready": .bool(portal != nil),
      ]))
  }

  func apiDescription() async throws -> JSONValue { try await tokens[0].apiDescription() }

  // MARK: The token server

  func serverAway(_ isAway: Bool) async throws {
    guard let server else { throw BenchError("the bench has not started this token server") }
    let former = changing
    let task = Task {
      _ = await former?.result
      feed.publish(.fault, .object(["fault": .text(isAway ? "server-away" : "server-back")]))
      if isAway { await server.stop() } else if await !server.isRunning { try await server.start() }
      await publishPrograms()
    }
    changing = task
    try await task.value
  }

  /// What the QR code in a picture says.
  func read(_ picture: QRPicture) async throws -> JSONValue {
    pictures += 1
    return .object(["uri": .text(try await picture.text("picture-\(pictures)", in: plan.folder))])
  }

  /// A new enrollment URI, as the token server's administrator makes it.
  func enrollmentURI(of user: String) async throws -> JSONValue {
    guard let server else { throw BenchError("the administrator of that token server makes activation codes") }
    return .object(["uri": .text(try await server.enrollmentURI(of: user))])
  }
}
