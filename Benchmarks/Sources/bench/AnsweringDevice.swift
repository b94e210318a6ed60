// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// A device that immediately approves every request, with the same connections as a token: a stream for the hints, and
/// one connection for all other requests.
final class AnsweringDevice {
  let enrolled: EnrolledDevice
  /// Called with a transaction when the server has confirmed its answer with a receipt.
  var onReceipt: (String) -> Void = { _ in }
  private let site: Site
  private let events: Connection
  private let requests: Connection
  private var unread: [UInt8] = []

  private var device: Device { enrolled.device }

  init(_ enrolled: EnrolledDevice, at site: Site) {
    self.enrolled = enrolled
    self.site = site
    events = Connection(to: site)
    requests = Connection(to: site)
    events.stream(device.eventStream) { [unowned self] in read($0) }
  }

  func hangUp() { for connection in [events, requests] { connection.hangUp() } }

  private func read(_ bytes: [UInt8]) {
    unread += bytes
    // An event ends with an empty line (HTML Living Standard §9.2.6).
    while let end = unread.indices.dropLast().first(where: { unread[$0] == 10 && unread[$0 + 1] == 10 }) {
      let event = String(decoding: unread[..<end], as: UTF8.self)
      unread.removeFirst(end + 2)
      var fields: [Substring: Substring] = [:]
      for line in event.split(separator: "\n") {
        let halves = line.split(separator: ":", maxSplits: 1)
        if halves.count == 2 { fields[halves[0]] = halves[1].dropFirst() }
      }
      guard fields["event"] == "request", let data = fields["data"],
        let content = try? JSON.decode(DeviceEvent.self, from: Array(data.utf8)),
        let transaction = content.transactionID
      else { continue }
      answer(transaction)
    }
  }

  /// Reads the list with the newest request's message, like a token, and fetches the message of an older request.
  private func answer(_ transaction: String) {
    requests.send(device.call("GET", Device.list)) { [unowned self] response in
      guard let list = site.decode(PendingList.self, response, "list") else { return }
      guard let entry = list.requests.first(where: { $0.transactionID == transaction }) else {
        return site.fail("the list lacks a request that was hinted")
      }
      if let message = entry.sealedMessage { return answer(transaction, to: message) }
      requests.send(device.call("GET", "/device/v1/requests/\(transaction)/message")) { [unowned self] response in
        guard let sealed = site.decode(SealedRequest.self, response, "fetch") else { return }
        answer(transaction, to: sealed.message)
      }
    }
  }

  private func answer(_ transaction: String, to message: String) {
    guard let answer = try? enrolled.approval(of: enrolled.open(message)) else {
      return site.fail("a message could not be opened")
    }
    let path = "/device/v1/requests/\(transaction)/answers"
    requests.send(device.call("POST", path, answer, [("Idempotency-Key", Random.uuid())])) { [unowned self] response in
      guard site.decode(RequestStatus.self, response, "answer")?.receipt != nil else { return }
      onReceipt(transaction)
    }
  }
}
