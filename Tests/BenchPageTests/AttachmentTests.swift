// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import Cryptography
import Glibc
import Testing
import UnixSockets

@testable import BenchPage

/// What the bench knows about programs that run already.
@Suite(.timeLimit(.minutes(5))) struct AttachmentTests {
  @Test("The credentials of a portal are those of the file for curl in docs/token-server.md") func portalFile() throws {
    let file = try PortalFile(
      parsing: """
        user = "portal:a:b"
        cacert = "/srv/token-server/ca.pem"
        silent
        show-error

        """)
    #expect(file.client == "portal" && file.secret == "a:b" && file.authority == "/srv/token-server/ca.pem")
    let other = try PortalFile(parsing: "# a comment\r\n\tuser=portal:x \r\n")
    #expect(other.client == "portal" && other.secret == "x" && other.authority == nil)
  }

  @Test(
    "Other files are refused",
    arguments: [
      "", "user", "user = \"portal\"", "user = \":x\"", "user = \"portal:\"", "user = \"\"", "cacert = \"/ca.pem\"",
      "user = \"a:b\"\nuser = \"a:b\"", "user = \"a:b\"\nproxy = \"x\"", "user = \"a:\\\"b\"", "user = \"a:b",
      "url = x",
      "user = a:b\ninsecure",
    ])
  func otherFiles(text: String) { #expect(throws: BenchError.self) { try PortalFile(parsing: text) } }

  private func isAccepted(_ words: String) -> Bool {
    (try? BenchCommand.parse(["--page", "p"] + words.split(separator: " ").map(String.init))) != nil
  }

  @Test(
    "Combinations that are possible",
    arguments: [
      "", "--tokens 8", "--state s", "--server https://h:8443 --portal f", "--server https://h --portal f --user ann",
      "--server https://h --portal f --user ann --user ben --tokens 2", "--server https://h --portal f --state s",
    ])
  func possible(words: String) { #expect(isAccepted(words)) }

  @Test(
    "Combinations that are not",
    arguments: [
      "--tokens 0", "--tokens 9", "--state s --tokens 2", "--server https://h", "--portal f", "--user ann",
      "--server http://h --portal f", "--server https://h/x --portal f", "--server HTTPS://h --portal f",
      "--server https://h --portal f --user ann --tokens 2",
      "--server https://h --portal f --user a --user a --tokens 2",
    ])
  func impossible(words: String) { #expect(!isAccepted(words)) }

  @Test("A picture is a PNG of bounded size") func pictures() throws {
    let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47]
    _ = try QRPicture(base64: png.base64)
    let large = png + [UInt8](repeating: 0, count: QRPicture.largest)
    for text in ["", "!", large.base64, Array("GIF89a".utf8).base64] {
      #expect(throws: BenchError.self) { try QRPicture(base64: text) }
    }
  }

  @Test("A token that does not run is named, with what to do") func noToken() async throws {
    let token = TokenProgram(program: "/bin/false", folder: "/tmp", attachedTo: "/tmp/no-such-token")
    let error = await #expect(throws: BenchError.self) { try await token.start() }
    #expect(error?.description.contains("/tmp/no-such-token") == true)
    #expect(error?.description.contains("approval-token serve") == true)
  }

  @Test("A token that accepts a connection and does not answer is named") func silentToken() async throws {
    var template = Array("/tmp/silent-token-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let path = ControlRequest.socket(in: folder)
    defer {
      unlink(path)
      remove(folder)
    }
    let socket = try UnixSocket.listening(at: path)
    let token = TokenProgram(program: "/bin/false", folder: folder, attachedTo: folder)
    let error = await #expect(throws: BenchError.self) {
      try await ControlClient.$patience.withValue(1) { try await token.start() }
    }
    #expect(error?.description.contains("does not answer at \(path)") == true)
    extendLifetime(socket)
  }

  @Test("A token that accepts no further connection runs; a press there fails") func fullToken() async throws {
    var template = Array("/tmp/full-token-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let path = ControlRequest.socket(in: folder)
    defer {
      unlink(path)
      remove(folder)
    }
    let socket = try UnixSocket.listening(at: path)
    let waiting = (0..<100).map { _ in try? UnixSocket.connected(to: path, waits: false) }
    #expect(waiting.contains { $0 == nil })
    let token = TokenProgram(program: "/bin/false", folder: folder, attachedTo: folder)
    let button = HeldButton(token: token) { _, _, _ in }
    let outcome = Outcome()
    // In a task, which waits for the end of the listener at the most.
    Task {
      guard await token.isRunning else { return outcome.set(.success(())) }
      do {
        _ = try await button.begin(.approve)
        outcome.set(.success(()))
      } catch { outcome.set(.failure(error)) }
    }
    try await outcome.wait()
    #expect(outcome.error?.contains(path) == true)
    extendLifetime((socket, waiting))
  }

  @Test("A token server that does not answer is named") func noServer() async throws {
    let portal = Portal(
      url: "https://127.0.0.1:1", account: try PortalFile(parsing: "user = a:b"), curlFile: "f", callback: "http://c")
    let error = await #expect(throws: BenchError.self) { try await portal.check(of: "alice") }
    #expect(error?.description.hasPrefix("the token server at https://127.0.0.1:1: ") == true)
    #expect(error?.description.contains("cannot be reached") == true)
  }
}
