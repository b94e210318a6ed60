// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The connection that the server keeps for each device, with curl as the client.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct KeptConnectionTests {
  @Test("The connection of a device is kept for its next request, and others are closed") func keptForADevice() throws {
    let ready = try ReadyServer(configuration: "[limits]\nidle_seconds = 1\ndevice_idle_seconds = 600\n")
    let (server, device) = (ready.server, ready.device)
    /// The statuses of two requests, of which the second comes 3 s after the first, and their new connections.
    func exchange(_ requests: [[String]]) throws -> String {
      let options = ["--output", "/dev/null", "--write-out", "%{http_code} %{num_connects}\n"]
      let each = requests.map { server.curl.all(options + $0) }
      return try run(Curl.program, ["--rate", "20/m"] + each.joined(separator: ["--next"])).text
    }
    _ = try device.events(after: nil)
    let list = try (0..<2).map { _ in try device.arguments("GET", "/device/v1/pending") }
    #expect(try exchange(list) == "200 1\n200 0\n")
    let metadata = [[server.url + ServerMetadata.path], [server.url + ServerMetadata.path]]
    // One of three times is enough: a busy machine may keep the server from closing the connection before that.
    #expect(try (1...3).contains { _ in try exchange(metadata) == "200 1\n200 1\n" })
  }
}
