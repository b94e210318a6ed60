// SPDX-License-Identifier: Apache-2.0
import NIOCore
import ReferenceProtocol

/// Frames of `text/event-stream` (HTML Living Standard §9.2.6).
enum EventFrame {
  /// A comment line; keeps the connection open and has no meaning.
  static let heartbeat = ByteBuffer(string: ":\n\n")

  /// - Parameter data: the event as JSON on one line, as the encoder writes it.
  static func encode(_ kind: DeviceEvent.Kind, data: [UInt8], id: String) -> ByteBuffer {
    var frame = ByteBuffer(string: "id: \(id)\nevent: \(kind.rawValue)\ndata: ")
    frame.writeBytes(data)
    frame.writeString("\n\n")
    return frame
  }

  static func encode(_ event: DeviceEvent, id: String) -> ByteBuffer {
    encode(event.kind, data: JSON.encode(event), id: id)
  }
}
