// SPDX-License-Identifier: Apache-2.0
import Cryptography
import FoundationEssentials
import Glibc

/// A picture with a QR code, as portals show it for an enrollment. `zbarimg` reads it, as a process with little time
/// and memory.
struct QRPicture: Sendable {
  static let program = "/usr/bin/zbarimg"
  static let largest = 160 << 10
  private static let longestText = 4096

  private let png: [UInt8]

  /// - Parameter base64: a PNG.
  init(base64: String) throws(BenchError) {
    guard let png = bytes(base64: base64), png.count <= Self.largest, png.starts(with: [0x89, 0x50, 0x4E, 0x47]) else {
      throw BenchError("a picture is a PNG of at most \(Self.largest >> 10) KiB")
    }
    self.png = png
  }

  /// The text of the QR code.
  /// - Parameters:
  ///   - name: of the files in `folder` for this call.
  ///   - folder: for the text, which may be a secret.
  func text(_ name: String, in folder: String) async throws -> String {
    guard access(Self.program, X_OK) == 0 else { throw BenchError("install zbar-tools, which reads QR codes") }
    let child = try await ChildProcess.start(
      name,
      [
        "/usr/bin/prlimit", "--cpu=5", "--as=\(1 << 30)", Self.program, "--raw", "--quiet", "--nodbus", "--oneshot",
        "-Sdisable", "-Sqrcode.enable", "png:-",
      ], input: png, folder: folder)
    let killer = Task {
      try await Task.sleep(for: .seconds(10))
      child.send(SIGKILL)
    }
    let status = await child.end()
    killer.cancel()
    defer { for file in [child.outputFile, child.errorFile] { unlink(file) } }
    let found = BenchPage.text(of: child.outputFile, atMost: Self.longestText)
    guard status == 0, let line = found.split(separator: "\n").first else {
      throw BenchError("no QR code in the picture")
    }
    return String(line)
  }
}
