// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// The token with `reader-finger` and libfprint's virtual reader, which compares names. In the job `readers`.
  @Suite(.enabled(if: (try? BuiltProgram.path("reader-finger")) != nil)) struct FingerprintReader {
    /// - Parameter body: also gets the folder of the virtual devices, and the path of the program, which is its own.
    func withReader(
      _ body: @escaping (EndToEndFixture, _ sensors: String, _ program: String) async throws -> Void
    ) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let (sensors, program) = (folder.file("sensors"), folder.file("reader-finger"))
      try FileManager.default.createDirectory(atPath: sensors, withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: program, withDestinationPath: try BuiltProgram.path("reader-finger"))
      // Each use of the reader has a virtual device of its own.
      let plugin = """
        authenticator = "finger"
        kind = "biometric"
        command = ["/bin/sh", "-c", "FP_VIRTUAL_DEVICE=\(sensors)/$$ exec \(program) --virtual-readers 0"]
        """
      try await withPINScene(
        settings: Fingerprints.settings, types: Fingerprints.types,
        configuration: { server in
          let folder = URL(filePath: server.directory).deletingLastPathComponent().appending(path: "authenticators.d")
          try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
          try? plugin.write(to: folder.appending(path: "finger.toml"), atomically: true, encoding: .utf8)
          return "[authenticators]\n"
        }
      ) { try await body($0, sensors, program) }
    }

    func registerFinger(_ token: TestToken, in sensors: String, _ used: inout Set<String>) async throws {
      try await token.registerFinger { registration in
        let sensor = try await newSensor(in: sensors, &used)
        for number in 1...7 {
          try await registration.errors.line(with: "scan \(number) of 7")
          try await scan("index", at: sensor)
        }
      }
    }

    @Test("A finger on a reader approves, another one does not, and the third leaves the PIN") func readerFromEndToEnd()
      async throws
    {
      try await withReader { fixture, sensors, _ in
        let token = fixture.token
        var used: Set<String> = []
        try await registerFinger(token, in: sensors, &used)
        for (fingers, method) in [
          (["index"], "push_with_fingerprint"), (["thumb", "index"], "push_with_fingerprint"),
          (["thumb", "thumb", "thumb"], "push_with_pin"),
        ] {
          let transaction = try await fixture.askForPIN(type: "transfer")
          for finger in fingers { try await scan(finger, at: newSensor(in: sensors, &used)) }
          if method == "push_with_pin" { try await token.type("13589") }
          #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
          #expect(try await fixture.portal.finalResult(of: transaction).authenticationMethod == method)
        }
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    /// The virtual device of the next use.
    func newSensor(in folder: String, _ used: inout Set<String>) async throws -> String {
      let known = used
      let sensor = try await eventually("the reader is open") {
        try FileManager.default.contentsOfDirectory(atPath: folder).first { !known.contains($0) }
      }
      used.insert(sensor)
      return "\(folder)/\(sensor)"
    }

    func scan(_ finger: String, at sensor: String) async throws {
      let script = """
        import socket, sys
        reader = socket.socket(socket.AF_UNIX)
        reader.connect(sys.argv[1])
        reader.sendall(b"SCAN " + sys.argv[2].encode())
        """
      _ = try await eventually("the reader takes \(finger)") {
        try await run("python3", ["-c", script, sensor, finger]).exit == .code(0) ? true : nil
      }
    }
  }
}
