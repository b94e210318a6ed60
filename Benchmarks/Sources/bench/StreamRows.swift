// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The token server's resources for idle devices: one event stream each, without events.
final class StreamRows {
  private static let counts = [1_000, 10_000]
  /// Long enough for two heartbeats of the server.
  private static let idleSeconds = 40.0
  /// The number of concurrent TLS handshakes.
  private static let abreast = 64

  private let name: String
  private let server: TokenServer
  private let site: Site
  private var devices: [Device] = []
  private var streams: [Connection] = []
  /// Streams that have received their first line.
  private var opened = 0
  /// Lines after the first: heartbeats.
  private var heartbeats = 0
  private var rows: [Row] = []

  /// - Parameter database: the URL of an empty PostgreSQL database; nil for SQLite.
  static func measure(on stage: Stage, database: String? = nil) throws -> [Row] {
    try raiseDescriptorLimit(to: UInt(counts[counts.count - 1]) + 200)
    let (name, directory) =
      database == nil ? ("server", "stream-server") : ("server with PostgreSQL", "stream-server-postgresql")
    let server = try TokenServer(on: stage, named: directory, database: database)
    defer { server.end() }
    let measurement = StreamRows(name, server)
    // The loop keeps connections, and thus their descriptors, which a later measurement needs.
    defer { measurement.streams.forEach { $0.hangUp() } }
    let credential = try server.fleetToken()
    for count in counts {
      try measurement.register(count, credential)
      try measurement.open(count)
    }
    return measurement.rows
  }

  private init(_ name: String, _ server: TokenServer) {
    self.name = name
    self.server = server
    site = Site(server)
  }

  /// Registers devices until there are `count`, and gets an access token for each. Not part of the measurement.
  private func register(_ count: Int, _ credential: String) throws {
    let connections = (0..<16).map { _ in Connection(to: site) }
    defer { connections.forEach { $0.hangUp() } }
    var done = devices.count
    for index in devices.count..<count {
      let device = try Device(at: site)
      devices.append(device)
      let connection = connections[index % connections.count]
      connection.send(device.registration(credential)) { response in
        device.takeRegistration(response)
        connection.send(device.tokenRequest()) { response in
          device.takeToken(response)
          done += 1
        }
      }
    }
    site.loop.run(for: 240) { done == count || site.hasFailed }
    try site.requireNoFailures()
    guard done == count else { throw BenchError("only \(done) of \(count) devices were registered in 240 s") }
  }

  private func open(_ count: Int) throws {
    let former = streams.count
    let memoryBefore = server.readings.mebibytes("VmRSS")
    let (processor, began) = (ProcessorShares(of: [server.readings]), Instant.now)
    site.loop.run(for: 120) {
      while streams.count < count, streams.count - opened < Self.abreast { openNext() }
      return opened == count || site.hasFailed
    }
    try site.requireNoFailures()
    guard opened == count else { throw BenchError("only \(opened) of \(count) streams were open after 120 s") }
    let seconds = Instant.now - began
    let (shares, limit) = (processor.text, processor.limit)
    let perSecond = Double(count - former) / seconds
    site.loop.run(for: 5)
    let idleBefore = server.readings.processorSeconds
    heartbeats = 0
    site.loop.run(for: Self.idleSeconds) { site.hasFailed }
    try site.requireNoFailures()
    let idle = (server.readings.processorSeconds - idleBefore) / Self.idleSeconds
    let memory = server.readings.mebibytes("VmRSS")
    let each = (memory - memoryBefore) * 1024 / Double(count - former)
    rows += [
      Row(
        "\(name), \(count) idle streams: memory",
        "\(memory.text(0)) MiB resident, \(each.text(1)) KiB per new stream", goal: "all open", met: heartbeats >= count
      ),
      Row(
        "\(name), \(count) idle streams: opening",
        "\(perSecond.text(0)) per second (\(seconds.text(1)) s for \(count - former)); \(shares)"),
      Row("  limited by", limit),
      Row("\(name), \(count) idle streams: processor", "\((idle * 100).text(1)) % of a core, heartbeats included"),
    ]
  }

  private func openNext() {
    let stream = Connection(to: site)
    var isFirst = true
    stream.stream(devices[streams.count].eventStream) { [unowned self] _ in
      if isFirst { opened += 1 } else { heartbeats += 1 }
      isFirst = false
    }
    streams.append(stream)
  }
}

/// Raises the limit up to the hard limit; both sides of every stream need a descriptor, and the server inherits the
/// limit.
private func raiseDescriptorLimit(to wanted: UInt) throws {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = limit.rlim_max
  guard limit.rlim_max >= wanted, setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
    throw BenchError("at most \(limit.rlim_max) open files are allowed (ulimit -Hn); \(wanted) are needed")
  }
}
