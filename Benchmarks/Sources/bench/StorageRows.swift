// SPDX-License-Identifier: Apache-2.0

/// What slow storage costs the user: the same token with waits for storage of different lengths, in alternating rounds
/// at one server, and the waits and bytes of one approval.
final class StorageRows {
  private static let rounds = 8
  /// Seconds of each wait. An ordinary SD card takes 10 to 30 ms, a cheap one 60 to 100.
  private static let delays = [0, 0.020, 0.060]

  /// A token, its storage, and what was measured.
  private final class Subject {
    let delay: Double
    let storage: SlowStorage
    let round: ApprovalRound
    var waits = WaitCounts()
    var (toLED, toGreen, bytes): ([Double], [Double], [Double]) = ([], [], [])

    init(_ delay: Double, _ storage: SlowStorage, _ round: ApprovalRound) {
      (self.delay, self.storage, self.round) = (delay, storage, round)
    }

    func measure(counts: Bool) throws {
      let readings = round.token.readings
      let bytesBefore = readings.writtenBytes
      var moments: [SlowStorage.Waits] = []
      let times = try round.run { moments.append(try storage.waits()) }
      pause(seconds: WaitCounts.settling)
      moments.append(try storage.waits())
      guard counts else { return }
      waits.add(moments)
      toLED.append(times.toLED)
      toGreen.append(times.toGreen)
      if let after = readings.writtenBytes, let bytesBefore { bytes.append(after - bytesBefore) }
    }
  }

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "storage-server")
    defer { server.end() }
    let site = Site(server)
    let callbacks = CallbackReceiver(on: site.loop)
    let library = try SlowStorage.library(on: stage)
    let subjects = try delays.map { delay in
      let name = "storage-\(Int(delay * 1e3))"
      let storage = try SlowStorage(library, named: name, delay: delay, on: stage)
      let token = try Token(on: stage, user: name, at: server, environment: storage.environment)
      return Subject(delay, storage, try ApprovalRound(token, at: server, site, callback: callbacks.url))
    }
    defer { subjects.forEach { $0.round.token.end() } }
    // The first round opens connections and fills caches.
    for round in 0...rounds { for subject in subjects { try subject.measure(counts: round > 0) } }
    try site.requireNoFailures()
    // With the longest waits, what is written after green has certainly not ended before it.
    let waits = subjects[subjects.count - 1].waits.rows("token, one approval", "release to green", goals: (1, 4))
    return waits + bytes(of: subjects[0]) + (try PINStorageRows.measure(on: stage, library))
      + (try WearRow.measure(on: stage)) + subjects.flatMap { rows($0, beside: subjects[0]) }
  }

  private static func bytes(of subject: Subject) -> [Row] {
    guard !subject.bytes.isEmpty else { return [] }
    let bytes = Sample(subject.bytes)
    return [
      Row(
        "token, one approval: written to storage",
        "\((bytes.median / 1024).text(0)) KiB (at most \((bytes.quantile(1) / 1024).text(0)), n = \(bytes.count))",
        goal: "≤ 16 KiB", met: bytes.median <= 16_384)
    ]
  }

  private static func rows(_ subject: Subject, beside fast: Subject) -> [Row] {
    let (toLED, toGreen) = (Sample(subject.toLED), Sample(subject.toGreen))
    let title = "token, a wait for storage takes \(Int(subject.delay * 1e3)) ms longer"
    guard subject.delay > 0 else {
      return [
        Row("token: portal asks to LED", toLED.inMilliseconds), Row("  release to green", toGreen.inMilliseconds),
      ]
    }
    let ratio = toLED.median / Sample(fast.toLED).median
    let longer = toGreen.median - Sample(fast.toGreen).median
    let most = subject.delay + 0.005
    return [
      Row(
        "\(title): portal asks to LED", "\(ratio.text(2)) × without: \(toLED.inMilliseconds)", goal: "≤ 1.1 ×",
        met: ratio <= 1.1),
      Row(
        "  release to green", "+\((longer * 1e3).text(1)) ms: \(toGreen.inMilliseconds)",
        goal: "≤ +\((most * 1e3).text(0)) ms", met: longer <= most),
    ]
  }
}
