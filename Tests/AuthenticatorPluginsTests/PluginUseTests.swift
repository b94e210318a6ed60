// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Glibc
import MobileAuth
import Testing

@testable import AuthenticatorPlugins

@Suite("One use of a plug-in", .timeLimit(.minutes(5))) struct PluginUseTests {
  @Test("Its hints come in order, then its answer") func answer() async throws {
    let plugin = try TestPlugin(
      #"""
      read -r line; echo "$line" >"$folder/question"; echo "$@" >"$folder/arguments"
      printf '{"waiting":"touch the badge"}\n{"retry":"again"}\n{"data":"AQID","registration":"BwgJ"}\n'
      """#)
    #expect(
      await plugin.events() == [
        .waiting("touch the badge"), .retry("again"), data([1, 2, 3], registration: [7, 8, 9]),
      ])
    let question = try #require(plugin.written("question"))
    let members = try #require(try JSONSerialization.jsonObject(with: Data(question.utf8)) as? [String: Any])
    #expect(members["v"] as? Int == 1 && members["step"] as? String == "authenticate")
    #expect(members["server"] as? String == "h")
    #expect(members["account"] as? String == "alice" && members["authenticator"] as? String == "badge")
    #expect(members["challenge"] as? String == Data(0..<32).base64EncodedString())
    #expect(members["registration"] as? String == "AQI=" && members.count == 7)
    #expect(plugin.written("arguments") == "one two")
  }

  @Test("Its cancellation and its fallback are answers, and texts are safe to show and short") func otherAnswers()
    async throws
  {
    func events(_ line: String) async throws -> [DriverEvent] {
      try await TestPlugin("cat <<'end'\n\(line)\nend").events()
    }
    #expect(try await events(#"{"fallback":true}"#) == [.fallback])
    #expect(try await events(#"{"cancel":"no\u001b[31m badge\n"}"#) == [.canceled("no[31m badge")])
    let long = try await events(#"{"cancel":""# + String(repeating: "€", count: 300) + #""}"#)
    guard case .canceled(let reason) = long.first else {
      Issue.record("\(long)")
      return
    }
    #expect(reason.utf8.count <= 256 && reason.hasSuffix("…"))
  }

  /// A child of the service must not reach what the service can.
  @Test("It has no descriptor, no environment and no standard error of the service") func separation() async throws {
    try #require(getenv("HOME") != nil)
    let descriptor = Glibc.open("/dev/null", O_RDONLY)
    defer { close(descriptor) }
    let plugin = try TestPlugin(
      #"""
      env >"$folder/environment"; ls /proc/$$/fd >"$folder/descriptors"
      readlink /proc/$$/fd/2 >"$folder/errors"; pwd >"$folder/where"; echo '{"data":""}'
      """#)
    #expect(await plugin.events() == [data([])])
    #expect(plugin.written("environment")?.contains("HOME=") == false)
    // 10, 11: the shell's own descriptors of the script, and of its output meanwhile. A pipe would be another one.
    let open = Set(plugin.written("descriptors")?.split(separator: "\n").map(String.init) ?? ["none"])
    #expect(open.isSubset(of: ["0", "1", "2", "10", "11"]))
    #expect(plugin.written("errors") == "/dev/null" && plugin.written("where") == "/")
  }

  @Test(
    "Whatever it does wrong is a failure, never an answer",
    arguments: [
      ("exit 0", "ended without an answer"), ("exit 1", "ended without an answer"),
      ("kill -9 $$", "ended without an answer"),
      (#"printf '{"data":"AQID"}'"#, "ended without an answer"),
      ("head -c 1048576 /dev/zero | tr '\\0' a", "longer than 65536"),
      ("head -c 70000 /dev/zero | tr '\\0' a; echo", "longer than 65536"),
      ("echo no", "not JSON"), ("echo", "not JSON"), ("echo '[]'", "not a line"), ("echo '{}'", "not a line"),
      (#"echo '{"dat":"AQ=="}'"#, "dat"), (#"echo '{"step":"authenticate"}'"#, "step"),
      (#"echo '{"data":"AQ==","cancel":"x"}'"#, "cancel,data"), (#"echo '{"data":"AQ==","data":"Ag=="}'"#, "twice"),
      (#"echo '{"data":"?"}'"#, "data"), (#"echo '{"data":5}'"#, "data"), (#"echo '{"fallback":false}'"#, "fallback"),
      (#"echo '{"registration":"AQ=="}'"#, "registration"),
      (#"printf '{"data":"'; head -c 5468 /dev/zero | tr '\0' A; echo '"}'"#, "data"),
      (#"printf '{"data":"","registration":"'; head -c 43696 /dev/zero | tr '\0' A; echo '"}'"#, "registration"),
      (#"i=0; while [ $i -lt 33 ]; do echo '{"waiting":"x"}'; i=$((i+1)); done; sleep 60"#, "more than 32 lines"),
      (#"echo '{"data":"AQ=="}'; echo '{"data":"Ag=="}'"#, "does not end after its answer"),
      (#"echo '{"data":"AQ=="}'; sleep 0.2; echo '{"cancel":"x"}'"#, "does not end after its answer"),
      (#"echo '{"data":"AQ=="}'; sleep 60"#, "does not end after its answer"),
    ])
  func wrong(script: String, reason: String) async throws {
    let events = await (try TestPlugin(script)).events(patience: PluginPatience()).filter { $0 != .waiting("x") }
    guard events.count == 1, case .failed(let why) = events[0] else {
      Issue.record("\(events)")
      return
    }
    #expect(why.contains(reason), "\(why)")
  }

  @Test("At its time limit it is killed with its children, and a later answer counts for nothing") func timeLimit()
    async throws
  {
    // On a busy machine the program may begin, or be read, later.
    for limit in [500, 5000, 30_000] {
      let plugin = try TestPlugin(
        #"""
        sleep 300 & echo $! >"$folder/pid"
        echo '{"waiting":"x"}'; sleep \#(limit / 500); echo '{"data":"AQID"}'; cat >/dev/null
        """#)
      let events = await plugin.events(limit: .milliseconds(limit))
      guard events == [.waiting("x"), .failed("no answer within \(limit) ms")] else { continue }
      try await eventually("the end of the program") { plugin.isGone ? () : nil }
      return
    }
    Issue.record("no use ends at its time limit")
  }

  @Test("A program that has left its process group is killed") func otherGroup() async throws {
    let plugin = try TestPlugin(
      #"""
      echo $$ >"$folder/pid"
      exec python3 -c 'import os, time
      os.setpgid(0, os.getpgid(os.getppid()))
      os.write(1, b"{\"data\":\"AQID\"}\n")
      os.close(1)
      os.close(0)
      time.sleep(300)'
      """#)
    #expect(await plugin.events() == [data([1, 2, 3])])
    try await eventually("the end of the program") { plugin.isGone ? () : nil }
  }

  @Test("A use that is no longer wanted ends the program") func cancellation() async throws {
    let plugin = try TestPlugin("echo $$ >\"$folder/pid\"\necho '{\"waiting\":\"x\"}'\nexec sleep 300")
    for await event in plugin.driver().events(for: TestPlugin.call) {
      #expect(event == .waiting("x"))
      break
    }
    try await eventually("the end of the program") { plugin.isGone ? () : nil }
  }

  @Test("A program that is not there, or cannot be started, is not available") func missing() async throws {
    let missing = PluginDriver(PluginConfiguration(authenticator: "badge", program: .command(["/nonexistent"])))
    #expect(!missing.isAvailable)
    #expect(await missing.all(of: TestPlugin.call) == [.failed("it cannot be started: No such file or directory")])
    let plugin = try TestPlugin("exit 0")
    #expect(plugin.driver().isAvailable && plugin.driver().input == .external(hold: false))
  }

  @Test("Behind a socket, each use is a connection; a socket that appears later counts") func socket() async throws {
    let plugin = try TestPlugin("")
    let path = "\(plugin.folder)/socket"
    let driver = PluginDriver(
      PluginConfiguration(authenticator: "badge", program: .socket(path)), patience: TestPlugin.patience)
    #expect(!driver.isAvailable)
    #expect(await driver.all(of: TestPlugin.call) == [.failed("connect \(path): No such file or directory")])
    let server = try TestListener(at: path) { line in
      line.contains("register") ? "{\"data\":\"AQ==\"}\n" : "{\"cancel\":\"only once\"}\n"
    }
    #expect(driver.isAvailable)
    let registration = DriverCall(step: .register, server: "h", account: "alice", authenticator: "badge", challenge: [])
    #expect(await driver.all(of: registration) == [data([1])])
    #expect(await driver.all(of: TestPlugin.call) == [.canceled("only once")])
    server.stop()
    #expect(await driver.all(of: TestPlugin.call) == [.failed("connect \(path): Connection refused")])
  }
}

/// Answers each connection's first line.
private final class TestListener: Sendable {
  private let descriptor: Int32

  init(at path: String, _ answer: @escaping @Sendable (String) -> String) throws {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    try #require(isBound && listen(descriptor, 4) == 0)
    self.descriptor = descriptor
    Thread.detachNewThread {
      while case let caller = accept(descriptor, nil, nil), caller >= 0 {
        var buffer = [UInt8](repeating: 0, count: 8192)
        let count = read(caller, &buffer, buffer.count)
        let reply = Array(answer(String(decoding: buffer[..<max(0, count)], as: UTF8.self)).utf8)
        _ = write(caller, reply, reply.count)
        close(caller)
      }
      close(descriptor)
    }
  }

  /// The file stays, as that of a program that has crashed.
  func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
