// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// `GET /device/v1/events` as a stream or as a long poll, and the delivery reports of devices of earlier versions.
struct EventRoutes: Sendable {
  let gate: DeviceGate
  let hub: EventHub
  let deliveries: Deliveries

  func add(to router: Router<ServerContext>) {
    router.get("/device/v1/events") { request, context in
      let (caller, hasUser) = try await gate.admit(request) { try !$0.profileNames(on: $1.clientID).isEmpty }
      let clientID = caller.clientID
      try await context.beginStream(hasUser: hasUser)
      return request.headers[.accept]?.contains("application/json") == true
        ? try await poll(by: clientID, request, context)
        : stream(to: clientID, after: request.headers[.lastEventID], context)
    }
    router.post("/device/v1/events/acks") { request, context in
      let now = gate.clock.now()
      let (caller, unreported) = try await gate.admit(request) {
        try $0.undeliveredTransactions(of: $1.clientID, now: now)
      }
      let acknowledgement = try JSON.decode(EventAcknowledgement.self, from: await request.bytes())
      let transactions = acknowledgement.transactions ?? []
      guard max(acknowledgement.ids.count, transactions.count) <= 256 else {
        throw DeviceAPIError(.invalidRequest, "more than 256 ids")
      }
      context.logger.debug("device \(caller.clientID) has received \(acknowledgement.ids.count) events")
      // Only what can be an ID is compared: comparing other text can take long.
      let reported = Set(transactions.filter { $0.utf8.count == 36 }).intersection(unreported)
      if !reported.isEmpty { try await deliveries.note(Array(reported), to: caller.clientID, now: now) }
      return Response.noContent
    }
  }

  private func stream(to clientID: ClientID, after cursor: String?, _ context: ServerContext) -> Response {
    let channel = context.channel
    let body = ResponseBody { [hub] writer in
      let subscription = hub.listen(clientID, isStream: true, after: cursor)
      defer { subscription.cancel() }
      // When the client disconnects, finishing the frames ends the loop below. Fails if it has disconnected already.
      try await channel.triggerUserOutboundEvent(ConnectionGuard.Event.atClose { subscription.cancel() })
      // Send a first line immediately, so that the device detects the connection.
      try await writer.write(EventFrame.heartbeat)
      for event in subscription.missed.events {
        try await writer.write(EventFrame.encode(event, id: subscription.missed.cursor))
      }
      for await frame in subscription.frames { try await writer.write(frame) }
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
  }

  /// Without a cursor, responds immediately with a cursor.
  private func poll(
    by clientID: ClientID, _ request: Request, _ context: ServerContext
  ) async throws -> Response {
    guard let cursor = try Form(query: request.uri.query)["after"] else {
      let page = hub.events(of: clientID, after: nil)
      return .json(EventPage(cursor: page.cursor, events: [DeviceEvent(.resync)]))
    }
    let subscription = hub.listen(clientID, isStream: false, after: cursor)
    defer { subscription.cancel() }
    // A device that has disconnected no longer counts as connected.
    try await context.channel.triggerUserOutboundEvent(ConnectionGuard.Event.atClose { subscription.cancel() })
    guard subscription.missed.events.isEmpty else { return .json(subscription.missed) }
    let seconds = LongPollWait.seconds(preferredBy: request.headers[.prefer])
    let deadline = context.channel.eventLoop.scheduleTask(in: .seconds(Int64(seconds))) { subscription.cancel() }
    defer { deadline.cancel() }
    for await _ in subscription.frames { return .json(hub.events(of: clientID, after: cursor)) }
    return .noContent
  }
}
