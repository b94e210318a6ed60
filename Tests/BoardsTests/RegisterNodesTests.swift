// SPDX-License-Identifier: Apache-2.0
import Boards
import Glibc
import Testing

@Suite(.timeLimit(.minutes(5))) struct RegisterNodesTests {
  @Test("A node that controls all lines and is accessible to other users than root is reported")
  func openNodesAreReported() throws {
    let folder = "/tmp/approval-registers-\(UInt32.random(in: .min ... .max))"
    try #require(mkdir(folder, 0o700) == 0)
    defer { for name in ["gpiomem", "gpiomem0", "gpiochip0", "pio0", "pio", ""] { remove("\(folder)/\(name)") } }
    let nodes: [(String, mode_t)] = [
      ("gpiomem", 0o666), ("gpiomem0", 0o600), ("gpiochip0", 0o666), ("pio0", 0o666), ("pio", 0o666),
    ]
    for (name, mode) in nodes {
      try #require(mknod("\(folder)/\(name)", S_IFREG | mode, 0) == 0 && chmod("\(folder)/\(name)", mode) == 0)
    }
    let closed = geteuid() == 0 ? [] : ["\(folder)/gpiomem0"]
    #expect(RegisterNodes.open(in: folder) == ["\(folder)/gpiomem"] + closed + ["\(folder)/pio0"])
    guard geteuid() == 0 else { return }
    try #require(chown("\(folder)/gpiomem0", 0, 1) == 0 && chmod("\(folder)/gpiomem0", 0o660) == 0)
    #expect(RegisterNodes.open(in: folder) == ["gpiomem", "gpiomem0", "pio0"].map { "\(folder)/\($0)" })
  }

  @Test("The check of a board reports such a node, with what to do") func boardCheck() async throws {
    let folder = "/tmp/approval-registers-\(UInt32.random(in: .min ... .max))"
    let node = "\(folder)/gpiomem"
    try #require(mkdir(folder, 0o700) == 0 && mknod(node, S_IFREG | 0o666, 0) == 0 && chmod(node, 0o666) == 0)
    defer { for path in [node, folder] { remove(path) } }
    var found: [BoardCheck.CheckResult] = []
    var profile = try BoardCatalog.profile("raspberry-pi-4")
    profile.keypad = nil
    for await finding in BoardCheck.findings(of: profile, nodes: folder) where finding.subject == "registers" {
      found.append(finding)
    }
    #expect(found.map(\.next) == [RegisterNodes.remedy])
    #expect(found.first?.text.hasPrefix("\(node) is not restricted to root") == true)
  }
}
