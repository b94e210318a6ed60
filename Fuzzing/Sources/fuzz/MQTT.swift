// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

@testable import MQTT
@testable import PingAMAdapter
@testable import ReferenceAdapter

/// Messages of an MQTT broker, for either kind of account, and broker addresses.
func readMQTTPayload(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 3)
  switch input.choice {
  case 0: readHint(input.bytes)
  case 1: _ = PushReceiver().ingress.isFinal(input.bytes)
  default:
    if let address = BrokerAddress.parse(input.text) { require(!address.host.isEmpty && address.port > 0, "a place") }
    _ = PingAM.rule(brokenByMailbox: input.text)
  }
}

private func readHint(_ bytes: [UInt8]) { _ = try? JSON.decode(DeviceEvent.self, from: bytes).hint }
