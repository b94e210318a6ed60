// SPDX-License-Identifier: Apache-2.0
@testable import OpenPGP

/// Received OpenPGP data: packet layouts in this project's parser, then certificates and messages through librnp.
func readOpenPGP(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 4)
  let body = input.bytes
  switch input.choice {
  case 0, 1: readLayout(body)
  case 2: _ = try? OpenPGPCertificate(parsing: body, at: 1_795_253_339)
  default: _ = try? Keys.token.open(body, from: Keys.server.certificate, limit: 65_536, at: 1_795_253_339)
  }
}

private func readLayout(_ body: [UInt8]) {
  body.withUnsafeBytes { body in
    guard let packets = try? Packet.sequence(in: body) else { return }
    require(packets.last?.end ?? 0 == body.count, "the packets are all there is")
    try? requireLayout(of: packets, primary: Packet.Tag.publicKey, subkey: Packet.Tag.publicSubkey)
  }
}
