// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Hummingbird
import NIOCore
import OpenPGP
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The routes for the pending list, for fetching one request, and for its status. Answers are in `AnswerRoutes`.
struct RequestRoutes: Sendable {
  let gate: DeviceGate
  let keyring: ServerKeyring
  let pins: PINAttemptVerifier
  let deliveries: Deliveries

  func add(to router: Router<ServerContext>) {
    router.get("/device/v1/pending") { try await pending($0, $1) }
    router.get("/device/v1/requests/:tid") { try await status($0, $1) }
    router.get("/device/v1/requests/:tid/message") { try await message($0, $1) }
  }

  private func pending(_ request: Request, _ context: ServerContext) async throws -> Response {
    let (now, query) = (gate.clock.now(), request.uri.query)
    let (caller, (open, profile)) = try await gate.admit(request) { records, caller in
      let parameters = try Form(query: query)
      let profileID = parameters["profile_id"].map { ProfileID($0) }
      let (name, value) = PendingList.includingMessage
      let open = try records.openTransactions(of: caller.clientID, now: now)
        .filter { profileID == nil || $0.profileID == profileID }
      // An error in the profile is reported to the device when it fetches the message.
      let newest = parameters[name] == value ? open.first : nil
      return (open, newest.flatMap { try? records.profile($0.profileID, of: caller.clientID) })
    }
    context.keepConnection(for: caller.clientID)
    // The tag excludes the members that count down: it stays the same while the list contains the same requests.
    let tag = "W/\"\(SHA256.hash(Array(open.map(\.id).joined(separator: " ").utf8)).prefix(12).lowercaseHex)\""
    if request.headers[.ifNoneMatch] == tag {
      return Response(status: .notModified, headers: [.eTag: tag, .cacheControl: "no-store"])
    }
    var entries = open.map { transaction in
      PendingEntry(
        transactionID: transaction.id, profileID: transaction.profileID.text, message: transaction.message,
        typeHint: transaction.type, sentAtMs: transaction.createdAt.milliseconds,
        timeToLiveMs: (transaction.expiresAt - transaction.createdAt).milliseconds,
        expiresInMs: transaction.timeLeft(at: now).milliseconds)
    }
    if let newest = open.first, let profile {
      let message = try? await sealed(newest, for: profile)
      entries[0].sealedMessage = message.flatMap { $0.utf8.count <= PendingList.longestMessage ? $0 : nil }
    }
    let list = Self.list(of: entries, at: now)
    let undelivered = open.prefix(list.count).filter { $0.deliveredAt == nil }.map(\.id)
    if !undelivered.isEmpty { deliveries.noteLater(undelivered, to: caller.clientID, now: now) }
    return .json(bytes: list.bytes, headers: [.eTag: tag])
  }

  /// The maximum size of the list, in bytes. A device accepts bodies up to 1 MiB; this size holds several hundred
  /// requests with long messages. Requests beyond it are listed when newer ones have ended.
  static let largestList = 256 * 1024

  /// The list with the newest entries, as many as fit, and their number.
  static func list(of entries: [PendingEntry], at now: Timestamp) -> (bytes: [UInt8], count: Int) {
    let list = JSON.encode(PendingList(serverTimeMs: now.milliseconds, requests: entries))
    guard list.count > largestList else { return (list, entries.count) }
    var room = largestList
    let newest = entries.prefix { entry in
      room -= JSON.encode(entry).count + 1
      return room >= 0
    }
    return (JSON.encode(PendingList(serverTimeMs: now.milliseconds, requests: Array(newest))), newest.count)
  }

  private func status(_ request: Request, _ context: ServerContext) async throws -> Response {
    let transaction = try await gate.admit(request) { try $0.transaction(context.path("tid"), of: $1.clientID) }.value
    return .json(transaction.status(at: gate.clock.now()))
  }

  /// Idempotent: every fetch returns the same bytes, until an attempt was verified.
  private func message(_ request: Request, _ context: ServerContext) async throws -> Response {
    let now = gate.clock.now()
    let (transaction, profile) = try await gate.admit(request) { records, caller in
      let transaction = try records.transaction(context.path("tid"), of: caller.clientID)
      try transaction.requireOpen(at: now)
      return (transaction, try records.profile(transaction.profileID, of: caller.clientID))
    }.value
    return .json(
      SealedRequest(
        message: try await sealed(transaction, for: profile), expiresInMs: transaction.timeLeft(at: now).milliseconds))
  }

  /// The request's message, as Base64.
  private func sealed(_ transaction: Transaction, for profile: Profile) async throws -> String {
    guard let (key, certificate) = try await keyring.correspondence(of: profile) else {
      throw DeviceAPIError(lacksKeysOf: profile)
    }
    let current = transaction.hasAttempts ? try await reissued(transaction, profile) : transaction
    return try key.seal(current.request, to: certificate).base64
  }

  /// The request with a current nonce, attempt number and PIN attempt counts, stored before an answer can refer to it.
  private func reissued(_ transaction: Transaction, _ profile: Profile) async throws -> Transaction {
    let needsPIN = transaction.method == .pushWithPIN || transaction.hasFallback
    let counts = needsPIN ? profile.knowledge?.counts(of: profile.id, limit: pins.limit) : nil
    guard try transaction.reissued(counts: counts).request != transaction.request else { return transaction }
    return try await gate.store.write { database in
      let reissued = try (database.transaction(transaction.id) ?? transaction).reissued(counts: counts)
      try database.setRequest(reissued)
      return reissued
    }
  }
}
