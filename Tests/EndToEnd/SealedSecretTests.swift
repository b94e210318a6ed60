// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// The device secret that the package makes, on a board with a TPM: systemd-creds with swtpm.
  @Suite(.enabled(if: geteuid() == 0)) struct SealedSecrets {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
    private static let credential = "/etc/approval-token/device-secret.cred"

    private struct Board {
      let folder: TemporaryDirectory

      /// - Parameter tpm: the name of the TPM; nil for none.
      func run(_ command: [String], tpm: String?) async throws -> Outcome {
        try await ProgramHarness.run(
          SealedSecrets.tests.appending(path: "Fixtures/software-tpm").path,
          [tpm.map { folder.file($0) } ?? "-", folder.file("board")] + command)
      }

      /// As approval-token-secret.service does at the first start.
      /// - Returns: the secret.
      func makeSecret(tpm: String?) async throws -> Data {
        let run = folder.file("run")
        try? FileManager.default.createDirectory(atPath: run, withIntermediateDirectories: false)
        let program = SealedSecrets.tests.appending(path: "../../packaging/debian/make-device-secret").standardized.path
        try await self.run(["env", "RUNTIME_DIRECTORY=\(run)", program], tpm: tpm).succeeded()
        return try Data(contentsOf: URL(filePath: run + "/secret"))
      }

      /// As systemd does for the service.
      /// - Parameter preparation: a command that is run before, with the TPM.
      /// - Returns: nil if it does not open.
      func open(_ credential: String = SealedSecrets.credential, tpm: String?, after preparation: String = ":")
        async throws -> Data?
      {
        let opened = folder.file("opened")
        try? FileManager.default.removeItem(atPath: opened)
        let script =
          "\(preparation) && systemd-creds decrypt --name=approval-token.device-secret \(credential) \(opened)"
        guard try await run(["sh", "-c", script], tpm: tpm).exit == .code(0) else { return nil }
        return try Data(contentsOf: URL(filePath: opened))
      }
    }

    private func withBoard(_ body: (Board) async throws -> Void) async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      try await body(Board(folder: folder))
    }

    @Test("A device secret is opened by its TPM and its storage only, whatever was started") func sealed() async throws
    {
      try await withBoard { board in
        let secret = try await board.makeSecret(tpm: "tpm")
        #expect(try await board.open(tpm: "tpm") == secret)
        #expect(try await board.open(tpm: "another") == nil)
        #expect(try await board.open(tpm: nil) == nil)
        // As after an update of the keys of Secure Boot. What is bound to PCR 7, systemd's default, is lost then.
        let bound = board.folder.file("bound")
        try await board.run(
          ["systemd-creds", "encrypt", "--name=approval-token.device-secret", board.folder.file("run/secret"), bound],
          tpm: "tpm"
        ).succeeded()
        let update = "tpm2_pcrextend 7:sha256=\(String(repeating: "1", count: 64))"
        #expect(try await board.open(bound, tpm: "tpm") == secret)
        #expect(try await board.open(bound, tpm: "tpm", after: update) == nil)
        #expect(try await board.open(tpm: "tpm", after: update) == secret)
        try FileManager.default.removeItem(atPath: board.folder.file("board/systemd"))
        #expect(try await board.open(tpm: "tpm") == nil)
      }
    }

    @Test("The command doctor says whether a TPM encrypts the device secret", arguments: ["tpm", nil] as [String?])
    func doctor(tpm: String?) async throws {
      try await withBoard { board in
        let credentials = board.folder.file("credentials")
        try FileManager.default.createDirectory(atPath: credentials, withIntermediateDirectories: false)
        try await board.makeSecret(tpm: tpm).write(
          to: URL(filePath: credentials + "/approval-token.device-secret"))
        let command = ["env", "CREDENTIALS_DIRECTORY=\(credentials)", Program.token]
        let state = ["--state", board.folder.file("state")]
        let uri = try board.folder.write("otpauth://totp/a?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", to: "uri")
        try await board.run(command + ["enroll", "--file", uri] + state, tpm: tpm).succeeded()
        let report = try await board.run(command + ["doctor"] + state, tpm: tpm).output
        #expect(report.contains("encrypted with a TPM") == (tpm != nil))
        #expect(report.contains("encrypted without a TPM") == (tpm == nil))
      }
    }
  }
}
