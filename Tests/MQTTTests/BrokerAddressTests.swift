// SPDX-License-Identifier: Apache-2.0
import MQTT
import Testing

@Suite("Broker addresses", .timeLimit(.minutes(5)))
struct BrokerAddressTests {
  @Test(
    "A host, with an optional port",
    arguments: [
      ("broker.example", "broker.example", 8883), ("broker.example:1234", "broker.example", 1234),
      ("192.0.2.1:8884", "192.0.2.1", 8884), ("[2001:db8::1]", "2001:db8::1", 8883),
      ("[2001:db8::1]:99", "2001:db8::1", 99),
    ] as [(String, String, UInt16)])
  func hostWithAnOptionalPort(text: String, host: String, port: UInt16) {
    let address = BrokerAddress.parse(text)
    #expect(address?.host == host && address?.port == port)
  }

  @Test(
    "Other texts are rejected",
    arguments: [
      "", ":8883", "broker:", "broker:0", "broker:65536", "broker:x", "2001:db8::1", "[::1", "[]", "[::1]8883",
      "mqtts://broker", "user@broker", "bro ker", "broker/x",
    ])
  func otherTextsAreRejected(text: String) { #expect(BrokerAddress.parse(text) == nil) }
}
