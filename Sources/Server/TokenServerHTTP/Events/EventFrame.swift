// SPDX-License-Identifier: Apache-2.0
import NIOCore
import ReferenceProtocol

/// Frames of `text/event-stream` (HTML Living Standard §9.2.6).
enum EventFrame {
  /// A comment line; keeps the connection open and has no meaning.
  static let heartbeat = ByteBuffer(string: ":\n\n")

  static func encode(_ event: DeviceEvent, id: String) -> ByteBuffer {
    var frame = ByteBuffer(string: "id: \(id)\nevent: \(event.kind.rawValue)\ndata: ")
    // JSON on one line: the encoder writes no line breaks and escapes those inside texts.
    frame.writeBytes(JSON.encode(event))
    frame.writeString("\n\n")
    return frame
  }
}
