// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Measurements of a process by the kernel.
struct ProcessReadings {
  let processID: Int32

  /// A field of `status` in kB, in MiB.
  func mebibytes(_ field: String) -> Double { (number(field, in: "status") ?? 0) / 1024 }

  /// Proportional set size in MiB. Nil without root: the programs forbid other users to read it.
  var proportional: Double? { number("Pss", in: "smaps_rollup").map { $0 / 1024 } }

  /// The current memory, as a row's text.
  var memory: String {
    let proportional = proportional.map { ", \($0.text(1)) proportional" } ?? ""
    return "\(mebibytes("VmRSS").text(1)) MiB resident (\(mebibytes("RssAnon").text(1)) its own\(proportional))"
  }

  /// Memory in MiB that the kernel cannot reclaim without swap: private pages that were written. Nil without root.
  var unreclaimable: Double? {
    guard let dirty = number("Private_Dirty", in: "smaps_rollup") else { return nil }
    return dirty / 1024
  }

  /// Bytes of file pages that became dirty so far, in pages of 4 KiB: what storage has to write. Nil without root.
  var writtenBytes: Double? { number("write_bytes", in: "io") }

  var threads: Int { Int(number("Threads", in: "status") ?? 0) }

  /// Wake-ups of each thread so far: its voluntary context switches. Others depend on what else the machine does.
  var wakeUps: [String: Int] {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/task")) ?? []
    return Dictionary(
      uniqueKeysWithValues: tasks.map { task in
        (task, Int(number("voluntary_ctxt_switches", in: "task/\(task)/status") ?? 0))
      })
  }

  /// The increase since `former`, of the threads that still exist.
  func wakeUps(since former: [String: Int]) -> Int {
    wakeUps.reduce(0) { $0 + $1.value - former[$1.key, default: 0] }
  }

  /// Seconds of processor time so far, in user and kernel mode.
  var processorSeconds: Double {
    // The name may contain blanks; after it, field 14 is utime, 15 stime (proc(5)).
    let fields = text("stat").split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  private func number(_ field: String, in file: String) -> Double? {
    for line in text(file).split(separator: "\n") where line.hasPrefix("\(field):") {
      return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
    }
    return nil
  }

  private func text(_ file: String) -> String {
    (try? String(contentsOfFile: "/proc/\(processID)/\(file)", encoding: .utf8)) ?? ""
  }
}

/// The processor time of a part of a run: of the server, of the load client, and of other processes on the machine,
/// which should use none.
struct ProcessorShares {
  private let servers: [ProcessReadings]
  private let began = Instant.now
  private let before: (server: Double, client: Double, machine: Double)

  init(of servers: [ProcessReadings]) {
    self.servers = servers
    before = (Self.seconds(of: servers), Self.client, Self.machine)
  }

  private static func seconds(of servers: [ProcessReadings]) -> Double {
    servers.reduce(0) { $0 + $1.processorSeconds }
  }

  /// The share of one core, from the beginning until now.
  var text: String {
    let elapsed = Instant.now - began
    let (own, client, others) = seconds
    func share(_ seconds: Double) -> String { (seconds / elapsed).text(2) }
    return "\(share(own)) of a core server, \(share(client)) load client, \(share(others)) others and kernel"
  }

  /// Whether the processor limits what is measured: all cores, or the one of the load client's only thread.
  var limit: String {
    let (own, client, others) = seconds
    let elapsed = Instant.now - began
    let (busy, cores) = ((own + client + others) / elapsed, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let what =
      busy >= 0.9 * Double(cores) ? "the processor" : client >= 0.9 * elapsed ? "the load client" : "not the processor"
    return "\(what): \(busy.text(2)) of \(cores) cores busy"
  }

  /// The time for each of `count` transactions, from the beginning until now.
  func text(forEachOf count: Int) -> String {
    let (own, client, others) = seconds
    func each(_ seconds: Double) -> String { (seconds / Double(max(1, count)) * 1e3).text(1) }
    return "\(each(own)) ms server, \(each(client)) load client, \(each(others)) others and kernel"
  }

  /// The server's part of it, in seconds.
  func server(forEachOf count: Int) -> Double { seconds.own / Double(max(1, count)) }

  private var seconds: (own: Double, client: Double, others: Double) {
    let own = Self.seconds(of: servers) - before.server
    let client = Self.client - before.client
    return (own, client, max(0, Self.machine - before.machine - own - client))
  }

  private static var client: Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  /// All cores; time that was neither idle nor spent waiting for a disk (proc(5)).
  private static var machine: Double {
    let text = (try? String(contentsOfFile: "/proc/stat", encoding: .utf8)) ?? ""
    let ticks = text.split(separator: "\n").first?.split(separator: " ").dropFirst().compactMap { Double($0) } ?? []
    guard ticks.count >= 7 else { return 0 }
    return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
